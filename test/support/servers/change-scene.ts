import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runProcess } from '../../../daemon/agents/process.ts'
import { OwnMessages } from '../../../daemon/delivery/loop-guard.ts'
import type { AgentReply, SeenCode } from '../../../daemon/delivery/sender.ts'
import { toCommitMessage } from '../../../daemon/delivery/targets/github/pull-request.ts'
import { Workspaces } from '../../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { resolveHome } from '../../../shared/home/home.ts'
import { temporaryFolder } from '../temporary.ts'
import { deliverWith, makeReply, resolveTargets } from './deliver.ts'
import { startGithubServer } from './github-server.ts'
import { type GitFiles, startGitServer } from './git-server.ts'

export const sceneToken = 'gho_canary-of-the-target'
export const sceneText = '# Fix the door\n\nThanks @octocat.'
const { signal } = new AbortController()

/** An id of an event by its number. */
export const toEventId = (number: number): string => `evt_${String(number).padStart(18, '0')}`

export type ChangeScene = Awaited<ReturnType<typeof startChangeScene>>

type Delivering = Partial<AgentReply> & {
  /** The target. */
  readonly to?: string
  readonly tokens?: readonly string[]
  readonly apiOrigin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly homeFolder?: string
}

/** GitHub and git with the repository acme/door, and agents that change it. */
export const startChangeScene = async () => {
  const home = await temporaryFolder()
  const github = await startGithubServer()
  const server = await startGitServer(sceneToken, 'acme/door', () => github.origin)

  const git_hosts = [new URL(server.origin).host]
  const gateway = gatewayFileSchema.parse({ providers: { github: { git_hosts } } })
  // One mirror for all changes.
  const workspaces = new Workspaces({
    home: resolveHome(await temporaryFolder()),
    run: runProcess,
    access: (async () => ({ accessToken: sceneToken })) as never,
  })
  let changes = 0

  /** What is kept of a run whose agent wrote these files. */
  const change = async (files: GitFiles, ref = 'main'): Promise<SeenCode> => {
    changes += 1
    const eventId = changes === 1 ? makeReply().eventId : toEventId(changes)
    const request = {
      repo: server.url,
      fixed: 'host',
      ref,
      base: undefined,
      pull: undefined,
      login: undefined,
      access: 'write',
      depth: undefined,
    } as const
    const prepare = workspaces.preparer(gateway, process.env)
    const workspace = await prepare(request, eventId, signal)
    for (const [path, content] of Object.entries(files)) {
      const place = join(workspace.path, path)
      await mkdir(dirname(place), { recursive: true })
      if (typeof content === 'string') await writeFile(place, content)
      else await rm(place)
    }
    const { ref: made, notes } = await workspace.commit(toCommitMessage(sceneText, eventId))
    await workspace.release()
    const { gitDir, head } = workspace
    const none = notes.length === 0 ? 'none' : 'left-out'
    return { head, change: made === undefined ? none : { gitDir, ref: made } }
  }
  const deliver = async (
    code: SeenCode | undefined,
    {
      to = 'pull-request:acme/door',
      tokens = [sceneToken],
      apiOrigin = server.origin,
      env = {},
      homeFolder = home,
      ...more
    }: Delivering = {},
  ) => {
    const messages = new OwnMessages()
    const test = deliverWith(
      { github: { api_url: `${apiOrigin}/api/v3` } },
      { tokens: { github: tokens, 'github@acme-doorward': tokens }, messages, env, homeFolder },
    )
    const targets = resolveTargets([to])
    const reply = makeReply(sceneText, { code, ...more })
    const [target] = targets
    const shown = target && (await test.preview(target, reply))
    const [result] = await test.deliver(targets, reply)
    for (const { head } of github.pulls) {
      const list = await served('branch', '--list', head, '--format=%(objectname)')
      if (list !== '') github.commits.set(head, list)
    }
    return { result, shown, messages, granted: test.granted, logged: test.logged }
  }
  const served = async (...args: string[]) => server.git(`--git-dir=${server.folder}`, ...args)
  return {
    home,
    github,
    server,
    change,
    deliver,
    served,
    close: () => {
      server.close()
      github.close()
    },
  }
}
