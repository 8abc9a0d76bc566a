module heedscoreboard

go 1.26.8

require (
	github.com/google/go-cmp v0.7.0
	github.com/heedproject/heed v0.0.0
)

require github.com/goccy/go-yaml v1.19.2 // indirect

replace github.com/heedproject/heed => ../
