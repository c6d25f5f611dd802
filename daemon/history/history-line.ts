import { z } from 'zod'
import { eventSchema, type EventRecord, type PastEvent } from '../../shared/api/api.ts'
import type { Detail } from '../events/event-record.ts'
import { openWord, type SealKey, sealWord } from '../oauth/tokens/sealed-file.ts'
import { parseJson } from '../util/payload-path.ts'

/*
 * One event as a line of `history/YYYY-MM-DD.jsonl`: names, times, codes and numbers in the clear. The rest of its
 * record is in `head`, and its prompt and answer are in `texts`, both only with `contents: sealed` and bound to the
 * id of the event.
 *
 *   {"id":"evt_0123456789abcdef01","receivedAt":"2026-11-28T20:07:46.123Z","kind":"webhook",…}
 *
 * A search reads id and time by their place, as JSON of each line would take most of its time.
 */

const clearFields = {
  id: true,
  receivedAt: true,
  kind: true,
  webhook: true,
  rule: true,
  state: true,
  stage: true,
  code: true,
  signed: true,
  source: true,
  size: true,
  agent: true,
  machine: true,
  attempts: true,
  durations: true,
  promptSize: true,
  usage: true,
} as const

const lineSchema = z.object({
  ...eventSchema.pick(clearFields).shape,
  endedAt: z.iso.datetime(),
  subjectKind: z.string().optional(),
  head: z.string().optional(),
  texts: z.string().optional(),
})
export type HistoryLine = z.infer<typeof lineSchema>

const headSchema = z.object(eventSchema.omit(clearFields).partial().shape)
const textsSchema = z.object({ prompt: z.string().optional(), result: z.string().optional() })

/** Characters of a prompt and of an answer; one that is longer is left out. */
const maxText = 64 * 1024
const maxHead = 16 * 1024

/** Events of other names or times are not kept: their place in a line would differ. */
export const hasLine = ({ id, receivedAt }: Pick<EventRecord, 'id' | 'receivedAt'>): boolean =>
  /^evt_[0-9a-f]{18}$/.test(id) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(receivedAt)

/** The line of a final event, with its texts where there is a key. */
export const toLine = (
  record: EventRecord,
  { prompt, result }: Detail,
  endedAt: Date,
  key?: SealKey,
): string => {
  const head = key && JSON.stringify(toHead(record))
  const line = {
    id: record.id,
    receivedAt: record.receivedAt,
    kind: record.kind,
    webhook: record.webhook,
    rule: record.rule,
    state: record.state,
    stage: record.stage,
    code: record.code,
    signed: record.signed,
    source: record.source,
    size: record.size,
    agent: record.agent,
    machine: record.machine,
    attempts: record.attempts,
    durations: record.durations,
    promptSize: record.promptSize,
    usage: record.usage,
    endedAt: endedAt.toISOString(),
    subjectKind: record.subject?.kind,
    ...(key &&
      head !== undefined &&
      head.length <= maxHead && {
        head: sealWord(key, toLabel(record.id, 'head'), head),
        texts: sealWord(
          key,
          toLabel(record.id, 'texts'),
          JSON.stringify({ prompt: bounded(prompt), result: bounded(result) }),
        ),
      }),
  }
  return JSON.stringify(line)
}

const toHead = (record: EventRecord): Partial<EventRecord> => ({
  subject: record.subject,
  detail: record.detail,
  deliveryId: record.deliveryId,
  about: record.about,
  target: record.target,
  targets: record.targets,
  context: record.context,
  sandbox: record.sandbox,
  session: record.session,
  links: record.links,
  approval: record.approval,
  outputs: record.outputs,
  resultPreview: record.resultPreview,
})

const bounded = (text: string | undefined): string | undefined =>
  text !== undefined && text.length <= maxText ? text : undefined

/** The event of a line. `past.texts` says whether the rest of its record could be opened. */
export const toPastEvent = (line: HistoryLine, key?: SealKey): PastEvent => {
  const { head, texts: _texts, endedAt, subjectKind, ...record } = line
  const opened = open(line, 'head', headSchema, key)
  return {
    ...record,
    targets: [],
    ...opened,
    past: {
      endedAt,
      ...(subjectKind !== undefined && { subjectKind }),
      texts: opened ? 'kept' : head === undefined ? 'none' : 'unreadable',
    },
  }
}

/** The same with its prompt and answer. */
export const toPastDetail = (line: HistoryLine, key?: SealKey): PastEvent => ({
  ...toPastEvent(line, key),
  ...open(line, 'texts', textsSchema, key),
})

type Part = 'head' | 'texts'

const open = <Schema extends z.ZodType>(
  line: HistoryLine,
  part: Part,
  schema: Schema,
  key: SealKey | undefined,
): z.infer<Schema> | undefined => {
  const word = line[part]
  const text = word === undefined || !key ? undefined : openWord(key, toLabel(line.id, part), word)
  return text === undefined ? undefined : schema.safeParse(parseJson(text)).data
}

/** Undefined for a line that is damaged. */
export const parseLine = (text: string): HistoryLine | undefined =>
  lineSchema.safeParse(parseJson(text)).data

const toLabel = (id: string, part: Part): string => `history ${id} ${part}`
