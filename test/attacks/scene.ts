import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { fixtureAgent } from '../support/fixtures.ts'
import { startGithubServer } from '../support/servers/github-server.ts'
import { type GitFiles, startGitServer } from '../support/servers/git-server.ts'
import { send } from '../support/servers/http.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { startTargetServer } from '../support/servers/target-server.ts'
import { homeIn, temporaryFolder } from '../support/temporary.ts'

export const hookSecret = 'the-secret-of-the-webhook'
/** The agent has it in its environment as KEY. */
export const stagingKey = 'the-key-of-the-staging-site'
/** The daemon holds it, and no agent gets it. */
export const loginToken = 'gho_canary-of-the-login'
export const sshKey = 'canary-of-the-ssh-key'

export type Scene = Awaited<ReturnType<typeof startScene>>

/** What the taken-over agent runs: the source of an async function that gets `fs` and `net`. */
export const obey = (program: string): string =>
  `OBEY:${Buffer.from(program).toString('base64url')}`

/** A daemon with its servers, whose agent does what any text tells it, in the real sandbox. */
export const startScene = async () => {
  const github = await startGithubServer()
  const git = await startGitServer(loginToken, 'acme/door', () => github.origin)
  const target = await startTargetServer()
  const evil = await startTargetServer()
  const person = await temporaryFolder()
  await mkdir(join(person, '.ssh'), { mode: 0o700 })
  await writeFile(join(person, '.ssh', 'id_ed25519'), sshKey, { mode: 0o600 })
  const command = JSON.stringify(fixtureAgent('obeys'))
  const agent = `kind: command, command: ${command}, sandbox: required, env: { KEY: "env:STAGING_KEY" }`
  const rule = 'secret_env: HOOK_SECRET, prompt_template: "{{event.text}}"'
  const workspace = `workspace: { repo: '${git.url}', ref: '{{event.ref}}', access: write }`
  const home = await homeIn(join(person, '.doorward'), {
    env: `HOOK_SECRET=${hookSecret}\nSTAGING_KEY=${stagingKey}\n`,
    gateway: `
oauth: { callback_port: 0 }
providers: { github: { git_hosts: ["${new URL(git.origin).host}"] } }
targets:
  github: { api_url: "${git.origin}/api/v3" }
  http: { other: { url: "${target.origin}", sign: false } }
`,
    agents: `
agents:
  offline: { ${agent}, network: off }
  online: { ${agent} }
  echo: { kind: echo }
`,
    webhooks: `
webhooks:
  - { path: /say, agent: offline, ${rule}, deliver_to: ["github:acme/door#7", "http:other", log] }
  - { path: /online, agent: online, ${rule}, deliver_to: "http:other" }
  - { path: /fix, agent: offline, ${rule}, ${workspace}, deliver_to: ["pull-request:acme/door", "http:other"] }
  - { path: /approve, agent: offline, ${rule}, approve: true, deliver_to: "http:other" }
  - { path: /file, agent: echo, ${rule}, deliver_to: "file:answers/{{event.name}}" }
  - { path: /issue, agent: echo, ${rule}, deliver_to: "github:{{event.repository}}#{{event.number}}" }
`,
  })
  await mkdir(home.tokens, { recursive: true, mode: 0o700 })
  const record = {
    version: 1,
    provider: 'github',
    account: null,
    scopes: [],
    tokenType: 'Bearer',
    accessToken: loginToken,
    expiresAt: null,
    obtainedAt: new Date().toISOString(),
    clientId: 'id',
  }
  await writeFile(join(home.tokens, 'github.json'), JSON.stringify(record), { mode: 0o600 })
  const daemon: RunningDaemon = await startDaemon({ home, variables: { HOME: person } })

  let count = 0
  let earlier: GitFiles = {}
  const post = async (
    path: string,
    payload: object,
    headers?: Readonly<Record<string, string>>,
  ) => {
    const body = JSON.stringify(payload)
    return send(`${daemon.url}${path}`, {
      body,
      headers: headers ?? githubHeaders(body, hookSecret),
    })
  }
  const run = async (path: string, payload: object): Promise<EventDetail> => {
    count += 1
    const reply = await post(path, { count, ...payload })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  return {
    daemon,
    person,
    github,
    git,
    target,
    evil,
    post,
    run,
    /** Runs the agent of /fix on a commit with these files. */
    fix: async (files: GitFiles, text = 'Please review.') => {
      count += 1
      const ref = `attack-${count}`
      // Each attack stands alone.
      await git.push({ ...earlier, ...files }, { to: `refs/heads/${ref}` })
      earlier = Object.fromEntries(Object.keys(files).map((name) => [name, undefined]))
      return run('/fix', { text, ref })
    },
    /** Everything that came out of the machine: bodies, addresses and what was pushed. */
    left: async () =>
      JSON.stringify([target.requests, evil.requests, github.comments, github.pulls]) +
      (await git.git(`--git-dir=${git.folder}`, 'log', '--branches=doorward/*', '-p', '--text')),
    close: async () => {
      await daemon.stop()
      for (const server of [github, git, target, evil]) server.close()
    },
  }
}
