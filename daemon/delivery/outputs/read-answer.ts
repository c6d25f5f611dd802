import type { OutputResult } from '../../../shared/api/api.ts'
import {
  type OutputAction,
  type OutputSettings,
  requestKinds,
} from '../../../shared/targets/outputs.ts'
import { isOutputsKind } from '../../../shared/targets/schema.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { type JsonBlock, takeJsonBlocks } from '../format/json-blocks.ts'
import type { ResolvedTarget } from '../sender.ts'
import { listNames, type OutputPlace, planActions } from './actions.ts'

/*
 * The only reader of what an answer requests. The block of requests is one fenced block of JSON, or the whole answer:
 *
 *   answer -> block of requests -> actions that `outputs` allows, and what is dropped
 *          -> text without the block, for all targets
 *          -> the same with the comments and the verdict of that block, for reviews and checks
 */

/** An answer with what it requests. */
export type ReadAnswer = {
  /** The answer without its block of requests. */
  readonly text: string
  /** For reviews and checks, which read a block of their own. */
  readonly reviewText: string
  readonly actions: readonly OutputAction[]
  readonly dropped: readonly OutputResult[]
}

/** Reads an answer by the rule of its event; without `outputs` it is only a text. */
export const readAnswer = (
  answer: string,
  settings: OutputSettings | undefined,
  targets: readonly ResolvedTarget[],
): ReadAnswer => {
  const place = findPlace(targets)
  if (!settings || !place) return { text: answer, reviewText: answer, actions: [], dropped: [] }
  const whole = answer.replaceAll('\r\n', '\n').trim()
  const dropped: OutputResult[] = []
  const { text, values } = takeJsonBlocks(answer, (block) => {
    if (!block.isFenced && block.source.trim() !== whole) return undefined
    if (block.value === undefined) dropped.push(...tellDamaged(block))
    return toRequests(block.value)
  })
  const [requests, another] = values
  if (!requests) return { text: answer, reviewText: answer, actions: [], dropped }
  const reviewText = [text, ...values.flatMap(toReviewBlock)].join('\n\n').trim()
  if (another) {
    const kinds = requestKinds.filter((kind) => values.some((one) => Object.hasOwn(one, kind)))
    const why = 'the answer has more than one block of requests'
    return { text, reviewText, actions: [], dropped: [...dropped, ...dropEach(kinds, why)] }
  }
  const unknown = Object.keys(requests).filter((key) => !known.includes(key))
  if (unknown.length > 0) {
    const names = listNames(unknown.map((key) => toPlainLine(key.slice(0, 200))))
    dropped.push({ kind: 'other', state: 'dropped', why: `no such request: ${names}` })
  }
  const planned = planActions(requests, settings, place)
  return { text, reviewText, ...planned, dropped: [...dropped, ...planned.dropped] }
}

/** The keys of a block that `github-review` and `github-check` read. */
const reviewKeys = ['comments', 'conclusion']
const known: readonly string[] = [...requestKinds, ...reviewKeys]

type Requests = Readonly<Record<string, unknown>>

const toRequests = (value: unknown): Requests | undefined =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  requestKinds.some((kind) => Object.hasOwn(value, kind))
    ? (value as Requests)
    : undefined

const toReviewBlock = (requests: Requests): string[] => {
  const kept = reviewKeys.filter((key) => Object.hasOwn(requests, key))
  if (kept.length === 0) return []
  const block = Object.fromEntries(kept.map((key) => [key, requests[key]]))
  return [`\`\`\`json\n${JSON.stringify(block)}\n\`\`\``]
}

/** The requests of a block that is cut or damaged. */
const tellDamaged = ({ source }: JsonBlock): OutputResult[] =>
  dropEach(
    requestKinds.filter((kind) => new RegExp(`[{,]\\s*"${kind}"\\s*:`).test(source)),
    'its block is no whole JSON',
  )

const dropEach = (kinds: readonly string[], why: string): OutputResult[] =>
  kinds.map((kind) => ({ kind, state: 'dropped', why }))

/** The place of the requests of an event; undefined for a rule that takes none. */
const findPlace = (targets: readonly ResolvedTarget[]): OutputPlace | undefined => {
  for (const target of targets)
    if (isOutputsKind(target.kind) && 'address' in target)
      return {
        sender: target.kind === 'github-outputs' ? 'github' : 'gitlab',
        hasSubject: /[#!]/.test(target.address),
      }
  return undefined
}
