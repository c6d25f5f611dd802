/*
 * Where agent programs keep their conversations, and in which form they take one that was begun elsewhere.
 */

/** The folder of a project in `projects` of Claude Code. */
export const toClaudeProject = (cwd: string): string => cwd.replaceAll(/[^A-Za-z0-9]/g, '-')

/** Below the home of Codex, which finds conversations by the id in the name. */
export const toCodexPath = (id: string): readonly string[] => [
  'sessions',
  '2026',
  '01',
  '01',
  `rollout-2026-01-01T00-00-00-${id}.jsonl`,
]

/** What `opencode run` forbids its conversations; an agent cannot have written that it may do more. */
const opencodePermission = ['question', 'plan_enter', 'plan_exit'].map((permission) => ({
  permission,
  pattern: '*',
  action: 'deny',
}))

/** Other fields share the conversation, or go back to the files of an earlier step. */
const opencodeInfo = 'id slug projectID title agent model version time summary cost tokens'.split(
  ' ',
)

/** An export of OpenCode for this folder: it answers nothing in another. Throws where it is damaged. */
export const toOpencodeExport = (bytes: Uint8Array, cwd: string): string => {
  const exported: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
  if (typeof exported !== 'object' || exported === null || !('info' in exported))
    throw new Error('not an export')
  const info = Object.entries(exported.info ?? {}).filter(([name]) => opencodeInfo.includes(name))
  const place = { directory: cwd, path: cwd.slice(1), permission: opencodePermission }
  return JSON.stringify({ ...exported, info: { ...Object.fromEntries(info), ...place } })
}
