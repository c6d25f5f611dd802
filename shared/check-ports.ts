import type { Gateway } from './config.ts'
import { valueUnder } from './schema-problems.ts'
import type { Problem, YamlFile, YamlPath } from './yaml-file.ts'

/**
 * Checks that no port of gateway.yaml is wanted twice at a time: by the main listener, the one for webhooks
 * and the callback of a login. 0 is any free one. `override` is that of `DOORWARD_PORT`, and `gateway` what
 * the file holds with its defaults, where it can be read.
 */
export const checkPorts = (
  file: YamlFile,
  gateway: Gateway | undefined,
  override: number | undefined,
  problems: Problem[],
): void => {
  const main = {
    name: override === undefined ? 'server.port' : 'DOORWARD_PORT',
    port: override ?? gateway?.server.port,
  }
  const open = { name: 'server.public_port', port: valueUnder(file.value, publicPort) }
  const check = (path: YamlPath, port: unknown, others: readonly (typeof open)[], hint: string) => {
    const other = others.find((one) => one.port === port)
    if (typeof port !== 'number' || port === 0 || !other) return
    problems.push(file.problemAt(path, `the same as ${other.name}`, hint))
  }
  check(publicPort, open.port, [main], 'choose another: only webhooks are served there')
  const callbacks = [
    { path: ['oauth', 'callback_port'], byDefault: gateway?.oauth.callback_port },
    ...Object.keys(gateway?.providers ?? {}).map((name) => ({
      path: ['providers', name, 'callback_port'],
      byDefault: undefined,
    })),
  ]
  for (const { path, byDefault } of callbacks) {
    const port = valueUnder(file.value, path) ?? byDefault
    check(path, port, [main, open], 'choose another: a login waits for the browser there')
  }
}

const publicPort = ['server', 'public_port'] as const
