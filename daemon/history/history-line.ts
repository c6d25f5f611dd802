import { z } from 'zod'
import { eventSchema, type PastEvent, type EventDetail } from '../../shared/api/api.ts'
import { openText, type SealKey, sealText } from '../oauth/tokens/sealed-file.ts'
import { parseJson } from '../util/payload-path.ts'

/*
 * One event as a line of `history/YYYY-MM-DD.jsonl`: names, times, codes and numbers in the clear. The
 * rest of a record is in `sealed` with `contents: sealed`, bound to the id of the event.
 */

const lineSchema = z.object({
  ...eventSchema.pick({
    id: true,
    kind: true,
    webhook: true,
    rule: true,
    receivedAt: true,
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
  }).shape,
  endedAt: z.iso.datetime(),
  subjectKind: z.string().optional(),
  sealed: z.string().optional(),
})
export type HistoryLine = z.infer<typeof lineSchema>

const contentsSchema = eventSchema
  .pick({
    subject: true,
    detail: true,
    deliveryId: true,
    about: true,
    target: true,
    targets: true,
    links: true,
    approval: true,
    outputs: true,
    resultPreview: true,
  })
  .partial()
  .extend({ prompt: z.string().optional(), result: z.string().optional() })

/** Characters of a prompt and of an answer; one that is longer is left out. */
const maxText = 64 * 1024

/** The line of a final event, with its texts where there is a key. */
export const toLine = (event: EventDetail, endedAt: Date, key?: SealKey): HistoryLine => ({
  id: event.id,
  kind: event.kind,
  webhook: event.webhook,
  rule: event.rule,
  receivedAt: event.receivedAt,
  endedAt: endedAt.toISOString(),
  state: event.state,
  stage: event.stage,
  code: event.code,
  signed: event.signed,
  source: event.source,
  size: event.size,
  agent: event.agent,
  machine: event.machine,
  attempts: event.attempts,
  durations: event.durations,
  promptSize: event.promptSize,
  usage: event.usage,
  subjectKind: event.subject?.kind,
  sealed: key && sealText(key, toLabel(event.id), JSON.stringify(toContents(event))),
})

const toContents = (event: EventDetail): z.infer<typeof contentsSchema> => ({
  subject: event.subject,
  detail: event.detail,
  deliveryId: event.deliveryId,
  about: event.about,
  target: event.target,
  targets: event.targets,
  links: event.links,
  approval: event.approval,
  outputs: event.outputs,
  resultPreview: event.resultPreview,
  prompt: bounded(event.prompt),
  result: bounded(event.result),
})

const bounded = (text: string | undefined): string | undefined =>
  text !== undefined && text.length <= maxText ? text : undefined

/** The event of a line. `texts` tells whether the rest of it could be opened. */
export const toPastEvent = (line: HistoryLine, key?: SealKey): PastEvent => {
  const { sealed, endedAt, subjectKind, ...record } = line
  const contents = openContents(line, key)
  return {
    ...record,
    targets: [],
    ...contents,
    past: {
      endedAt,
      ...(subjectKind !== undefined && { subjectKind }),
      texts: contents ? 'kept' : sealed === undefined ? 'none' : 'unreadable',
    },
  }
}

const openContents = ({ id, sealed }: HistoryLine, key: SealKey | undefined) => {
  if (sealed === undefined || !key) return undefined
  const opened = openText(key, toLabel(id), sealed)
  if (opened === undefined || opened === 'other-key') return undefined
  return contentsSchema.safeParse(parseJson(opened.text)).data
}

/** Undefined for a line that is damaged. */
export const parseLine = (text: string): HistoryLine | undefined =>
  lineSchema.safeParse(parseJson(text)).data

const toLabel = (id: string): string => `history ${id}`
