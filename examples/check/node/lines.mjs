// What the Node clients of this folder share: heed check asks for operations on
// stdin, one JSON object a line, and is told what came of each.
//
// A client runs with the settings that its documentation advises (best) or with
// those that it has when nothing is set (default): the first argument says which.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

export const best = process.argv[2] === 'best';

const installed = createRequire(import.meta.url);

// version is that of an installed package. Some do not export their package.json.
export function version(name) {
  const at = installed.resolve(name);
  const root = at.slice(0, at.lastIndexOf(`/node_modules/${name}/`));
  return installed(`${root}/node_modules/${name}/package.json`).version;
}

// serve makes operations until stdin ends. make(task) resolves to a status, or
// rejects; task.signal is aborted at the deadline.
export async function serve(name, version, claims, make) {
  const say = what => process.stdout.write(JSON.stringify(what) + '\n');
  say({ name, version, claims: [...claims, 'write', 'header', 'deadline', 'parallel', 'session'] });
  for await (const line of createInterface({ input: process.stdin })) {
    const task = { header: {}, ...JSON.parse(line) };
    task.signal = task.deadline_ms ? AbortSignal.timeout(task.deadline_ms) : undefined;
    make(task).then(
      status => say({ id: task.id, ok: status >= 200 && status < 300, status }),
      error => say({ id: task.id, ok: false, error: error.message }),
    );
  }
  process.exit(0);
}
