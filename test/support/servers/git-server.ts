import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cleanEnvironment } from '../daemon/daemon.ts'
import { temporaryFolder } from '../temporary.ts'

/** A repository of one commit behind HTTP Basic, by git's own server (git-http-backend(1)). */
export type GitServer = {
  readonly origin: string
  readonly url: string
  /** The bare repository. */
  readonly folder: string
  /** What came as name and password, one entry for each request that had any. */
  readonly logins: string[]
  /** Method and path of each request. */
  readonly requests: string[]
  /** Runs git in a clone that may push. */
  readonly git: (...args: string[]) => Promise<string>
  /** Commits these files in the clone and pushes it; returns the hash. */
  readonly push: (files: GitFiles, options?: PushOptions) => Promise<string>
  readonly close: () => void
}

/** The content of a file by its path; `{ link }` for a symbolic link, undefined to remove it. */
export type GitFiles = Readonly<Record<string, string | { readonly link: string } | undefined>>

/** By default the branch main. */
export type PushOptions = { readonly to?: string; readonly force?: boolean }

const run = promisify(execFile)

/** An environment in which git has no configuration but this file, and asks no person. */
export const gitEnvironment = (configuration: string): Record<string, string> => ({
  ...cleanEnvironment(),
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: configuration,
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
})

const gitConfiguration = '[user]\nname = Ada\nemail = ada@example.com\n'

/** The clone and the bare repository of one commit that every server begins with: a copy takes no process. */
let template: Promise<{ readonly work: string; readonly bare: string }> | undefined

const makeTemplate = async () => {
  const root = await temporaryFolder()
  const env = gitEnvironment(join(root, 'gitconfig'))
  const [work, bare] = [join(root, 'work'), join(root, 'bare')]
  const git = async (...args: string[]) => run('git', args, { cwd: work, env })
  await writeFile(join(root, 'gitconfig'), gitConfiguration)
  await mkdir(work)
  await git('init', '--quiet', '--initial-branch=main')
  await writeFile(join(work, 'hello.txt'), 'hello\n')
  await git('add', '.')
  await git('commit', '--quiet', '--message', 'one')
  await git('clone', '--quiet', '--bare', work, bare)
  for (const name of [
    'uploadpack.allowFilter',
    'uploadpack.allowAnySHA1InWant',
    'http.receivepack',
  ])
    await git(`--git-dir=${bare}`, 'config', name, 'true')
  return { work, bare }
}

/**
 * Starts one that lets in whoever has this password, whatever the name; everyone, without a password. Paths
 * below `/api/` are those of the servers at `api`.
 */
export const startGitServer = async (
  password: string | ((given: string) => boolean) | undefined,
  name = 'repository',
  api?: (path: string) => string,
): Promise<GitServer> => {
  const root = await temporaryFolder()
  const env = gitEnvironment(join(root, 'gitconfig'))
  const work = join(root, 'work')
  const bare = join(root, 'served', `${name}.git`)
  const git = async (...args: string[]) =>
    (await run('git', args, { cwd: work, env, maxBuffer: 2 ** 26 })).stdout.trim()
  template ??= makeTemplate()
  const { work: newWork, bare: newBare } = await template
  await writeFile(join(root, 'gitconfig'), gitConfiguration)
  await cp(newWork, work, { recursive: true })
  await cp(newBare, bare, { recursive: true })
  const remote = `[remote "origin"]\n\turl = ${bare}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n`
  await appendFile(join(work, '.git', 'config'), remote)

  const logins: string[] = []
  const requests: string[] = []
  const server = createServer((asked, response) => {
    if (api !== undefined && asked.url?.startsWith('/api/')) {
      forward(asked, response, api(asked.url))
      return
    }
    const [, basic] = /^Basic (.+)$/.exec(asked.headers.authorization ?? '') ?? []
    const login = basic && Buffer.from(basic, 'base64').toString()
    requests.push(`${asked.method} ${asked.url}`)
    if (login) logins.push(login)
    const given = login?.slice(login.indexOf(':') + 1) ?? ''
    const isRight = typeof password === 'function' ? password(given) : given === password
    if (password !== undefined && !isRight) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
      return
    }
    serve(asked, response, { ...env, GIT_PROJECT_ROOT: join(root, 'served') })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    url: `${origin}/${name}.git`,
    folder: bare,
    logins,
    requests,
    git,
    push: async (files, { to = 'refs/heads/main', force = false } = {}) => {
      const paths = Object.keys(files)
      if (paths.length > 0)
        await git('rm', '--quiet', '--cached', '--ignore-unmatch', '-r', '--', ...paths)
      for (const [path, content] of Object.entries(files)) {
        const place = join(work, path)
        await mkdir(dirname(place), { recursive: true })
        await rm(place, { recursive: true, force: true })
        if (typeof content === 'string') await writeFile(place, content)
        else if (content) await symlink(content.link, place)
      }
      await git('add', '--all', '--force')
      await git('commit', '--quiet', '--allow-empty', '--message', 'more')
      await git('push', '--quiet', ...(force ? ['--force'] : []), 'origin', `HEAD:${to}`)
      return git('rev-parse', 'HEAD')
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const forward = (incoming: IncomingMessage, response: ServerResponse, origin: string): void => {
  const { method, headers, url = '/' } = incoming
  const outgoing = request(new URL(url, origin), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  incoming.pipe(outgoing)
}

/** One request by the CGI program (RFC 3875). */
const serve = (
  request: IncomingMessage,
  response: ServerResponse,
  env: Readonly<Record<string, string>>,
): void => {
  const { pathname, search } = new URL(request.url ?? '/', 'http://loopback')
  const { headers } = request
  const child = spawn('git', ['http-backend'], {
    env: {
      ...env,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: decodeURIComponent(pathname),
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: headers['content-type'] ?? '',
      CONTENT_LENGTH: headers['content-length'] ?? '',
      HTTP_CONTENT_ENCODING: headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
      REMOTE_USER: 'ada',
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.on('error', () => undefined)
  request.pipe(child.stdin)
  let head = ''
  const readHead = (chunk: Buffer) => {
    head += chunk.toString('latin1')
    const end = head.indexOf('\r\n\r\n')
    if (end === -1) return
    child.stdout.off('data', readHead)
    const lines = head.slice(0, end).split('\r\n')
    const fields = lines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string])
    const { Status = '200', ...others } = Object.fromEntries(fields) as Record<string, string>
    response.writeHead(Number.parseInt(Status, 10), others)
    response.write(Buffer.from(head.slice(end + 4), 'latin1'))
    child.stdout.pipe(response)
  }
  child.stdout.on('data', readHead)
  child.once('error', () => response.destroy())
}
