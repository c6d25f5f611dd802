import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { devNull } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { findProgram } from '../../shared/agents/detect.ts'
import { type TunnelName, tunnelPrograms } from '../../shared/api/tunnel.ts'
import { readYaml } from '../../shared/config/yaml.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { openRequest } from '../../shared/network/outgoing.ts'
import { readListeners } from '../../shared/network/tcp-table.ts'
import { toPlainLine } from '../../shared/text.ts'
import { listAt, parseJson, textAt, valueAt } from '../util/payload-path.ts'

/** The port that a tunnel leads to, and how its program is run. */
export type Place = {
  /** `http://127.0.0.1:18790`, where webhooks alone are served. */
  readonly target: string
  /** The program. */
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

export type TunnelProgram = {
  /** The names that it has on PATH. */
  readonly names: readonly string[]
  readonly install: string
  /** Variables of the owner that it gets, besides those of proxies. */
  readonly variables?: readonly string[]
  /** Its arguments. No secret is among them: programs have tokens in files of their own. */
  readonly args: (place: Place) => Promise<readonly string[]>
  /** The public address, by what it has written so far; undefined while it is not known. */
  readonly address: (place: Place, output: string) => Promise<string | undefined>
  /** The same of one that somebody else started for this port. */
  readonly service?: (place: Place) => Promise<string | undefined>
  /** The way out, by the words with which it exits. */
  readonly fixes: readonly (readonly [RegExp, string])[]
}

/** True for `http://localhost:18790`, `127.0.0.1:18790` and `18790`. */
const leadsTo = ({ target }: Pick<Place, 'target'>, address: unknown): boolean => {
  const known = /^(?:http:\/\/)?(?:(?:127\.0\.0\.1|localhost|\[::1\]):)?(\d+)\/?$/
  return known.exec(String(address))?.[1] === new URL(target).port
}

/**
 * In the foreground, a funnel ends with its program. `funnel status --json` is the `ServeConfig` of
 * tailscale/tailscale, ipn/serve.go: `Web` by host and port, `AllowFunnel`, and the same below `Foreground`
 * by session. `BackendState` of `status --json` is `Running`, `NeedsLogin` or `Stopped`. Without the right to it
 * the program prints "Funnel is not enabled on your tailnet. To enable, visit: …", and waits.
 */
const tailscale: TunnelProgram = {
  names: ['tailscale'],
  install: 'https://tailscale.com/download',
  args: async (place) => {
    const { json, output } = await runJson(place, 'status', '--json')
    const state = textAt(json, 'BackendState')
    if (state !== 'Running') throw toRefusal('tailscale', state ?? output)
    const configs = listServeConfigs((await runJson(place, 'funnel', 'status', '--json')).json)
    const isFree = (port: string) => configs.every((config) => !valueAt(config, ['TCP', port]))
    // The ports that a funnel may have (tailscale.com/docs/features/tailscale-funnel).
    const port = ['443', '8443', '10000'].find(isFree) ?? '443'
    return ['funnel', `--https=${port}`, place.target]
  },
  address: async (place) => findFunnel(place),
  service: async (place) => findFunnel(place),
  fixes: [
    [/NeedsLogin|logged out|Stopped|NoState/i, 'tailscale up'],
    [
      /not enabled|no-funnel|s\/https/i,
      'allow it on the page that it names, then: doorward tunnel',
    ],
    [/denied/i, 'sudo tailscale set --operator=$USER, once'],
    [/connect to local|tailscaled/i, 'start the service of Tailscale'],
  ],
}

const findFunnel = async (place: Place): Promise<string | undefined> => {
  const { json } = await runJson(place, 'funnel', 'status', '--json')
  for (const config of listServeConfigs(json))
    for (const [host, web] of Object.entries(valueAt(config, ['Web']) ?? {})) {
      const isOurs = leadsTo(place, valueAt(web, ['Handlers', '/', 'Proxy']))
      if (isOurs && valueAt(config, ['AllowFunnel', host]) === true)
        return `https://${host.replace(/:443$/, '')}`
    }
  return undefined
}

const listServeConfigs = (json: unknown): unknown[] => [
  json,
  ...Object.values(valueAt(json, ['Foreground']) ?? {}),
]

/**
 * A named tunnel where the configuration has an `ingress` for our port, else a quick tunnel, whose address
 * is new each time: cloudflare/cloudflared, cmd/cloudflared/tunnel/quick_tunnel.go writes it in a box below
 * "Your quick Tunnel has been created!". A configuration for other services would answer the requests of a
 * quick tunnel (cloudflared#785): it gets an empty one. The name of a new address leads nowhere before
 * "Registered tunnel connection", and resolvers remember that.
 */
const cloudflared: TunnelProgram = {
  names: ['cloudflared'],
  install:
    'https://developers.cloudflare.com/cloudflare-one/networks/connectors/cloudflare-tunnel/downloads',
  args: async (place) =>
    (await findNamed(place)) === undefined
      ? ['tunnel', '--no-autoupdate', '--config', devNull, '--url', place.target]
      : ['tunnel', '--no-autoupdate', 'run'],
  address: async (place, output) => {
    if (!/Registered tunnel connection|Connection \S+ registered/.test(output)) return undefined
    const [, quick] =
      /quick Tunnel has been created![^\n]*\n[^\n]*?\|\s+(https:\/\/\S+)/.exec(output) ?? []
    return quick ?? (await findNamed(place))
  },
  fixes: [
    [/quick Tunnel/i, 'wait a minute, or make a tunnel with a name: cloudflared tunnel login'],
    [
      /cert|credentials|tunnel ID/i,
      'cloudflared tunnel login, and check ~/.cloudflared/config.yml',
    ],
  ],
}

const findNamed = async ({ env, ...place }: Place): Promise<string | undefined> => {
  const home = join(env['HOME'] ?? env['USERPROFILE'] ?? '', '.cloudflared')
  for (const folder of [home, '/etc/cloudflared', '/usr/local/etc/cloudflared'])
    for (const name of ['config.yml', 'config.yaml']) {
      const text = await readFile(join(folder, name), 'utf8').catch(() => undefined)
      if (text === undefined) continue
      // It reads the first that it finds.
      const rules = listAt(readYaml('', text).value, 'ingress')
      const own = rules.find((rule) => leadsTo(place, valueAt(rule, ['service'])))
      const host = textAt(own, 'hostname')
      return host === undefined || host.includes('*') ? undefined : `https://${host}`
    }
  return undefined
}

/**
 * `GET /api/tunnels` of the agent (ngrok.com/docs/agent/api) lists `public_url` and `config.addr`; it is at
 * 127.0.0.1:4040, or where the line "starting web service" says.
 */
const ngrok: TunnelProgram = {
  names: ['ngrok'],
  install: 'https://ngrok.com/download',
  variables: ['NGROK_AUTHTOKEN'],
  args: async (place) => ['http', place.target, '--log=stdout', '--log-format=json'],
  address: async (place, output) => {
    const [line = ''] = /^.*"starting web service".*$/m.exec(output) ?? []
    const [, web] = /"addr":"([\w.:[\]]+)"/.exec(line) ?? []
    return findNgrok(place, web ?? usualWeb)
  },
  service: async (place) => findNgrok(place, usualWeb),
  fixes: [
    [
      /ERR_NGROK_(105|107|4018)|authtoken/i,
      'ngrok config add-authtoken, with the token of your account',
    ],
    [/ERR_NGROK_(108|334)/, 'stop the other agent of your account'],
  ],
}

const usualWeb = '127.0.0.1:4040'
const maxAnswer = 1024 * 1024

/** False when another user's program listens on this port. */
export const isListenerOurs = async (port: number): Promise<boolean> =>
  (await readListeners(port)).every(({ user }) => user === process.getuid?.())

const findNgrok = async (place: Place, web: string): Promise<string | undefined> => {
  try {
    // Another user of this machine could name an address of their own.
    if (!(await isListenerOurs(Number(web.split(':').at(-1))))) return undefined
    const response = await openRequest(new URL(`http://${web}/api/tunnels`), {
      method: 'GET',
      signal: AbortSignal.timeout(commandMs),
    })
    let text = ''
    for await (const chunk of response) {
      text += String(chunk)
      if (text.length > maxAnswer) return undefined
    }
    const own = listAt(parseJson(text), 'tunnels').find(
      (tunnel) =>
        leadsTo(place, valueAt(tunnel, ['config', 'addr'])) &&
        textAt(tunnel, 'public_url')?.startsWith('https:'),
    )
    return textAt(own, 'public_url')
  } catch {
    return undefined
  }
}

/**
 * openziti/zrok, cmd/zrok2/sharePublic.go: with `--headless` it logs "access your zrok share at the following
 * endpoints:" and the address; the second version writes JSON, and the address without https. Where zrok's
 * agent runs, a share would be that agent's, and stay, but for `--force-local` (since 1.0).
 */
const zrok: TunnelProgram = {
  names: ['zrok', 'zrok2'],
  install: 'https://docs.zrok.io/docs/guides/install',
  variables: ['ZROK_API_ENDPOINT', 'ZROK2_API_ENDPOINT'],
  args: async (place) => ['share', 'public', place.target, '--headless', '--force-local'],
  address: async (_, output) => {
    const [, host] =
      /access your zrok share at the following endpoints:(?:\\n|\s)*(?:https:\/\/)?([\w.:-]+)/.exec(
        output,
      ) ?? []
    return host === undefined ? undefined : `https://${host}`
  },
  fixes: [
    [/zrok2? enable|unauthorized/i, 'zrok enable, with the token of your account'],
    [/unknown flag/, 'update zrok: it is older than 1.0'],
  ],
}

export const programs: Readonly<Record<TunnelName, TunnelProgram>> = {
  tailscale,
  cloudflared,
  ngrok,
  zrok,
}

/** Undefined for anything but an origin with https: what a program writes goes into the configuration. */
export const toOrigin = (address: string | undefined): string | undefined => {
  if (address === undefined || !URL.canParse(address)) return undefined
  const { protocol, origin, href } = new URL(address)
  return protocol === 'https:' && href === `${origin}/` ? origin : undefined
}

/** The path of a program. Throws `tunnel-failed`. */
export const findTunnelProgram = async (
  name: TunnelName,
  env: NodeJS.ProcessEnv,
): Promise<string> => {
  for (const known of programs[name].names) {
    const path = await findProgram(known, env['PATH'] ?? env['Path'] ?? '', env['PATHEXT'])
    if (path !== undefined) return path
  }
  throw new DoorwardError('tunnel-failed', `${name} is not on the PATH of the daemon`, {
    hint: `install it (${programs[name].install}), or choose another: --with`,
  })
}

/** The first of the known programs that is installed. Throws `tunnel-failed`. */
export const findFirstProgram = async (env: NodeJS.ProcessEnv): Promise<TunnelName> => {
  for (const name of tunnelPrograms)
    if (await findTunnelProgram(name, env).catch(() => undefined)) return name
  throw new DoorwardError(
    'tunnel-failed',
    `none of ${tunnelPrograms.join(', ')} is on the PATH of the daemon`,
    {
      hint: `install one, such as cloudflared, which needs no account (${programs.cloudflared.install}); webhook connect --poll needs none`,
    },
  )
}

/** The last words of a program that opens no tunnel, and the way out. */
export const toRefusal = (name: TunnelName, output: string): DoorwardError => {
  const words = quote(output)
  const [, hint = `start ${name} by hand to see why`] =
    programs[name].fixes.find(([known]) => known.test(words)) ?? []
  return new DoorwardError('tunnel-failed', `${name} opens no tunnel: ${words}`, {
    hint: `${hint}; or another program: --with`,
  })
}

/** The last words of a program: cut, and without what could be a token or the query of a delivery. */
export const quote = (output: string): string => {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .filter((line) => !/\bINFO?\b|"lvl":"(info|dbug)"|was empty/.test(line))
    .map((line) => line.replace(/^ERROR: */, '').trim())
  const words = toPlainLine([...new Set(lines)].join(' '))
    .replaceAll(/[\w-]{24,}/g, (word) => (/\d/.test(word) ? '…' : word))
    .replaceAll(/\?(?!node=)[^\s?=]+=\S*/g, '?…')
  if (words === '') return 'it does not say why'
  return words.length > maxWords ? `${words.slice(0, maxWords)}…` : words
}

const maxWords = 300
const commandMs = 10_000

const runJson = async (
  { path, env }: Place,
  ...args: readonly string[]
): Promise<{ readonly json: unknown; readonly output: string }> =>
  new Promise((resolve) =>
    execFile(path, args, { env, timeout: commandMs }, (_, stdout, stderr) =>
      resolve({ json: parseJson(stdout), output: stderr || stdout }),
    ),
  )
