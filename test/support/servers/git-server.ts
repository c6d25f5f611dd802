import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'
import { promisify } from 'node:util'
import { cleanEnvironment } from '../daemon/daemon.ts'
import { temporaryFolder } from '../temporary.ts'

/** A repository of one commit behind HTTP Basic, by git's dumb protocol (gitprotocol-http(5)). */
export type GitServer = {
  readonly origin: string
  readonly url: string
  /** What came as name and password, one entry for each request that had any. */
  readonly logins: string[]
  readonly close: () => void
}

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

/** Starts one that lets in whoever has this password, whatever the name. */
export const startGitServer = async (password: string): Promise<GitServer> => {
  const folder = await temporaryFolder()
  const env = gitEnvironment(join(folder, 'gitconfig'))
  const git = async (...args: string[]) => run('git', args, { cwd: folder, env })
  await writeFile(join(folder, 'gitconfig'), '[user]\nname = Ada\nemail = ada@example.com\n')
  await git('init', '--quiet', '--initial-branch=main', 'work')
  await writeFile(join(folder, 'work', 'hello.txt'), 'hello\n')
  await git('-C', 'work', 'add', '.')
  await git('-C', 'work', 'commit', '--quiet', '--message', 'one')
  await git('clone', '--quiet', '--bare', 'work', 'repository.git')
  await git('-C', 'repository.git', 'update-server-info')

  const logins: string[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const [, basic] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? []
      const login = basic && Buffer.from(basic, 'base64').toString()
      if (login) logins.push(login)
      if (!login?.endsWith(`:${password}`)) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
        return
      }
      const { pathname } = new URL(request.url ?? '/', 'http://loopback')
      const file = await readFile(join(folder, normalize(pathname))).catch(() => undefined)
      response.writeHead(file ? 200 : 404, { 'content-type': 'text/plain' }).end(file)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    origin,
    url: `${origin}/repository.git`,
    logins,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
