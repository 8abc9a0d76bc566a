package mask_test

import (
	"encoding/json"
	"fmt"

	"github.com/heedproject/heed/mask"
)

func ExampleSecret() {
	s := mask.Secret("hunter2")
	text, _ := json.Marshal(map[string]mask.Secret{"password": s})
	fmt.Printf("%v %q %s %d\n", s, s, text, len(string(s)))
	// Output: [secret] "[secret]" {"password":"[secret]"} 7
}

func ExampleTemplate() {
	fmt.Println(mask.Template("/v6/patrons/1234567/holds?token=x"))
	// Output: /v6/patrons/{id}/holds
}
