import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isAlive } from '../../../shared/home/lock.ts'

/*
 * tailscale, cloudflared, ngrok or zrok, by its first argument, as its sources and documents say that it
 * behaves (see daemon/tunnel/programs.ts). The folder of its second argument stands for the service: the file
 * `state` says what it refuses, and while there is a file `dead` it stays connected and brings nothing. What
 * comes to its public address, a new one at each start, really goes to the port.
 */

const [name = '', folder = '', ...args] = process.argv.slice(2)
const at = (file: string) => join(folder, file)
const readIf = (file: string) => (existsSync(at(file)) ? readFileSync(at(file), 'utf8') : '')
const state = readIf('state').trim()

appendFileSync(
  at('runs'),
  `${JSON.stringify({ name, pid: process.pid, args, env: process.env })}\n`,
)

const say = (text: string) => process.stdout.write(`${text}\n`)
const log = (text: string) => process.stderr.write(`2026-11-26T07:31:18Z ${text}\n`)
const refuse = (text: string) => {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}

/** Resolves with host and port of the public address. */
const forward = async (target: string, port = 0): Promise<string> => {
  const options = { key: readFileSync(at('key')), cert: readFileSync(at('cert')) }
  const server = createTlsServer(options, (request, response) => {
    if (existsSync(at('dead'))) return void response.writeHead(530).end('error code: 1033')
    const headers = { ...request.headers, 'x-forwarded-proto': 'https' }
    const { method = 'GET', url = '/' } = request
    const onward = httpRequest(`${target}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.once('error', () => response.writeHead(502).end())
    return request.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const wait = () => setInterval(() => undefined, 60_000)

const asCloudflared = async () => {
  if (state === 'refuses')
    return refuse(
      'failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": context deadline exceeded',
    )
  if (state === 'says-nonsense') {
    log('INF |  Your quick Tunnel has been created! Visit it at:  |')
    log('INF |  https://ada:secret@door.example  |')
    log('INF Registered tunnel connection')
    process.stderr.write(`${'a'.repeat(20_000_000)}\n\u001b[2J`)
  } else if (args.at(-1) === 'run') {
    const config = readFileSync(
      join(process.env['HOME'] ?? '', '.cloudflared', 'config.yml'),
      'utf8',
    )
    const [, host = '', service = ''] = /hostname: (\S+)\s+service: (\S+)/.exec(config) ?? []
    await forward(service, Number(host.split(':')[1]))
  } else {
    log('ERR Configuration file /dev/null was empty')
    log('INF Requesting new quick Tunnel on trycloudflare.com...')
    const host = await forward(args.at(-1) ?? '')
    log('INF +-----------------------------------------------------------------+')
    log(
      'INF |  Your quick Tunnel has been created! Visit it at (it may take some time to be reachable):  |',
    )
    log(`INF |  https://${host}                                                |`)
    log('INF +-----------------------------------------------------------------+')
  }
  return log(
    'INF Registered tunnel connection connIndex=0 event=0 ip=198.41.200.13 location=del04 protocol=quic',
  )
}

const asNgrok = async () => {
  if (state === 'logged-out')
    return refuse(
      'ERROR:  authentication failed: Usage of ngrok requires a verified account and authtoken.\nERROR:  Your authtoken: 2aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdefg\nERROR:  \nERROR:  ERR_NGROK_4018',
    )
  const addr = args[1] ?? ''
  const host = await forward(addr)
  const web = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        tunnels: [
          {
            name: 'command_line',
            uri: '/api/tunnels/command_line',
            public_url: `https://${host}`,
            proto: 'https',
            config: { addr, inspect: true },
          },
        ],
        uri: '/api/tunnels',
      }),
    ),
  )
  const port = Number(process.env['NGROK_TEST_PORT'] ?? 0)
  await new Promise<void>((resolve) => web.listen(port, '127.0.0.1', resolve))
  const at = `127.0.0.1:${(web.address() as AddressInfo).port}`
  const t = '2026-09-12T20:25:17+0200'
  say(
    `{"t":"${t}","lvl":"info","msg":"starting web service","obj":"web","addr":"${at}","allow_hosts":null}`,
  )
  say(
    `{"t":"${t}","lvl":"info","msg":"started tunnel","obj":"tunnels","name":"command_line","addr":"${addr}","url":"https://${host}"}`,
  )
}

const asTailscale = async () => {
  const [command, ...more] = args
  if (command === 'status') {
    say(
      JSON.stringify({ BackendState: state === 'logged-out' ? 'NeedsLogin' : 'Running', Self: {} }),
    )
    return process.exit(state === 'logged-out' ? 1 : 0)
  }
  if (more[0] === 'status') {
    // A funnel in the foreground ends with its session.
    const { pid = 0, config = {} } = JSON.parse(readIf('funnel') || '{}') as {
      readonly pid?: number
      readonly config?: object
    }
    say(JSON.stringify(pid > 0 && !isAlive(pid) ? {} : config))
    return process.exit(0)
  }
  if (state === 'not-enabled')
    return say(
      'Funnel is not enabled on your tailnet.\nTo enable, visit:\n\n         https://login.tailscale.com/f/funnel?node=nABC11CNTRL\n',
    )
  const target = more.at(-1) ?? ''
  const host = await forward(target)
  const config = {
    TCP: { '443': { HTTPS: true } },
    Web: { [host]: { Handlers: { '/': { Proxy: target } } } },
    AllowFunnel: { [host]: true },
  }
  const isForeground = process.env['FUNNEL_TEST_BACKGROUND'] === undefined
  writeFileSync(
    at('funnel'),
    JSON.stringify({
      pid: process.pid,
      config: isForeground ? { Foreground: { '38fe8a': config } } : config,
    }),
  )
  process.once('SIGTERM', () => {
    rmSync(at('funnel'), { force: true })
    process.exit(0)
  })
  return say(
    `Available on the internet:\n\nhttps://${host}/\n|-- proxy ${target}\n\nPress Ctrl+C to exit.`,
  )
}

const asZrok = async () => {
  if (state === 'logged-out')
    return refuse("\u001b[31m[ERROR]\u001b[0m: unable to load environment; did you 'zrok enable'?")
  const host = await forward(args[2] ?? '')
  return state === 'second-version'
    ? say(
        JSON.stringify({
          level: 'INFO',
          msg: `access your zrok share at the following endpoints:\n ${host}`,
        }),
      )
    : log(
        `[   0.555]    INFO main.(*sharePublicCommand).shareLocal: access your zrok share at the following endpoints:\n https://${host}`,
      )
}

const all: Readonly<Record<string, () => Promise<unknown>>> = {
  cloudflared: asCloudflared,
  ngrok: asNgrok,
  tailscale: asTailscale,
  zrok: asZrok,
}
wait()
await all[name]?.()
