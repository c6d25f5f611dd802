/*
 * Transcripts of runs, for programs that their owner starts at the terminal without a sandbox. An agent may have
 * written anything into them. What was said is kept; permissions, folders, system prompts and links to other
 * services, which a program would use, are left out.
 */

/** The transcript for a program that runs in this folder. Throws where it is damaged. */
export type ToTerminalForm = (bytes: Uint8Array, folder: string) => string

type Line = Readonly<Record<string, unknown>>

const isLine = (value: unknown): value is Line =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const parseLines = (bytes: Uint8Array): Line[] =>
  Buffer.from(bytes)
    .toString('utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line): unknown => JSON.parse(line))
    .filter(isLine)

const toText = (lines: readonly Line[]): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('')

const pick = (line: Line, names: readonly string[]): Line =>
  Object.fromEntries(Object.entries(line).filter(([name]) => names.includes(name)))

const words = (text: string): string[] => text.split(' ')

const claudeTypes = ['user', 'assistant', 'system']
const claudeFields = words(
  'type subtype uuid sessionId timestamp version isSidechain isMeta message content toolUseResult isCompactSummary compactMetadata logicalParentUuid userType',
)

/** Without `permission-mode`, `worktree-state`, `bridge-session`, recorded system prompts and their like. */
export const toClaudeTerminalForm: ToTerminalForm = (bytes, folder) => {
  const lines = parseLines(bytes)
  const isKept = ({ type }: Line) => claudeTypes.includes(String(type))
  const parents = new Map(
    lines.filter((line) => !isKept(line)).map(({ uuid, parentUuid }) => [uuid, parentUuid]),
  )
  // A line follows the last one before it that is kept. Lines in a circle follow none.
  const findParent = (line: Line): unknown => {
    const seen = new Set<unknown>()
    let parent = line['parentUuid']
    while (parents.has(parent) && !seen.has(parent)) {
      seen.add(parent)
      parent = parents.get(parent)
    }
    return typeof parent === 'string' && !seen.has(parent) ? parent : null
  }
  return toText(
    lines
      .filter(isKept)
      .map((line) => ({ parentUuid: findParent(line), ...pick(line, claudeFields), cwd: folder })),
  )
}

const codexMeta = words(
  'id session_id timestamp originator cli_version source thread_source model_provider',
)
const codexEvents = words(
  'task_started user_message agent_message agent_reasoning item_completed token_count task_complete turn_aborted',
)

/** Without `turn_context` and `thread_settings_applied`, whose approvals and sandbox Codex would use. */
export const toCodexTerminalForm: ToTerminalForm = (bytes, folder) =>
  toText(
    parseLines(bytes).flatMap<Line>((line) => {
      const payload = isLine(line['payload']) ? line['payload'] : {}
      if (line['type'] === 'session_meta')
        return { ...line, payload: { ...pick(payload, codexMeta), cwd: folder } }
      const isSaid =
        line['type'] === 'response_item' ||
        line['type'] === 'compacted' ||
        (line['type'] === 'event_msg' && codexEvents.includes(String(payload['type'])))
      return isSaid ? line : []
    }),
  )

const geminiHead = ['sessionId', 'projectHash', 'startTime', 'lastUpdated', 'kind']

/** Without `directories`, which Gemini CLI adds to those that its tools may read. */
export const toGeminiTerminalForm: ToTerminalForm = (bytes) =>
  toText(
    parseLines(bytes).flatMap<Line>((line) => {
      if (isLine(line['$set'])) return { $set: pick(line['$set'], [...geminiHead, 'messages']) }
      if (line['type'] === 'user' || line['type'] === 'gemini' || '$rewindTo' in line) return line
      return 'sessionId' in line ? pick(line, geminiHead) : []
    }),
  )
