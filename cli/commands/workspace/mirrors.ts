import type { ClearedWorkspaces, WorkspaceSummary } from '../../../shared/api/workspaces.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm } from '../../terminal/input.ts'
import { moment } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'

/** Prints the mirrors, the one that was used last first. */
export const listWorkspaces = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await getWorkspaces(context)
  if (terminal.json) return terminal.printJson(answer)
  if (answer.workspaces.length === 0) return terminal.say(noMirror)
  const now = new Date()
  const rows = answer.workspaces.map(({ repository, bytes, running, lastUsedAt }) => [
    repository,
    formatBytes(bytes),
    String(running),
    lastUsedAt === null ? '-' : moment(lastUsedAt, now),
  ])
  for (const line of tableLines([['REPOSITORY', 'SIZE', 'RUNNING', 'LAST USED'], ...rows]))
    terminal.print(line)
}

/** Removes what no run uses, after a question. */
export const clearWorkspaces = async (
  context: Context,
  _words: readonly string[],
  { yes }: { readonly yes?: boolean },
): Promise<void> => {
  const { terminal } = context
  const { workspaces } = await getWorkspaces(context)
  if (workspaces.length > 0 && !yes) {
    const bytes = workspaces.reduce((sum, mirror) => sum + mirror.bytes, 0)
    const agreed = await confirm(
      {
        question: `remove ${describeMirrors(workspaces.length)} (${formatBytes(bytes)})?`,
        refusal: 'clear removes mirrors, which are fetched again when they are needed',
        interrupted: 'nothing was removed',
      },
      terminal,
    )
    if (!agreed) return terminal.say('nothing was removed')
  }
  const cleared = await withDaemon(context, (client) =>
    client.delete<ClearedWorkspaces>('/workspaces'),
  )
  if (terminal.json) return terminal.printJson(cleared)
  if (cleared.removed + cleared.inUse === 0) return terminal.say(noMirror)
  terminal.print(`removed ${describeMirrors(cleared.removed)} (${formatBytes(cleared.bytes)})`)
  if (cleared.inUse > 0) terminal.say(`${describeMirrors(cleared.inUse)} in use, and kept`)
}

const noMirror = 'there is no mirror of a repository'

const getWorkspaces = async (context: Context) =>
  withDaemon(context, (client) => client.get<{ workspaces: WorkspaceSummary[] }>('/workspaces'))

const describeMirrors = (count: number): string => `${count} ${count === 1 ? 'mirror' : 'mirrors'}`

const formatBytes = (bytes: number): string => {
  const megabytes = bytes / 1_000_000
  if (megabytes >= 1000) return `${(megabytes / 1000).toFixed(1)} GB`
  return megabytes >= 10 ? `${Math.round(megabytes)} MB` : `${megabytes.toFixed(1)} MB`
}
