import type { TargetResult } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { ReadyTarget } from '../webhook/expand-targets.ts'
import type { Answered } from './answered.ts'
import { appendToFile } from './file.ts'
import { writeToStandardOutput } from './log.ts'

/*
 * The story of one answer: it goes to each target in turn. One that fails does not keep it from the
 * others, and is reported by name.
 */

/** Brings an answer to every target. Never rejects: what failed is in the results. */
export type Deliver = (
  targets: readonly ReadyTarget[],
  answered: Answered,
) => Promise<TargetResult[]>

export const createDeliver =
  (homeFolder: string): Deliver =>
  async (targets, answered) => {
    const results: TargetResult[] = []
    for (const target of targets) results.push(await deliverTo(target, answered, homeFolder))
    return results
  }

const deliverTo = async (
  target: ReadyTarget,
  answered: Answered,
  homeFolder: string,
): Promise<TargetResult> => {
  try {
    const detail = await send(target, answered, homeFolder)
    return { target: target.text, state: 'done', attempts: 1, ...(detail ? { detail } : {}) }
  } catch (error) {
    const known = error instanceof DoorwardError ? error : undefined
    return {
      target: target.text,
      state: 'failed',
      attempts: 1,
      detail: known?.message ?? 'something went wrong inside the daemon',
    }
  }
}

/** Sends to one target; what it returns is a remark for the person who looks at the event. */
const send = async (
  target: ReadyTarget,
  answered: Answered,
  homeFolder: string,
): Promise<string | undefined> => {
  switch (target.kind) {
    case 'invalid':
      throw target.error
    case 'log':
      return writeToStandardOutput(answered)
    case 'file':
      return appendToFile(target.path, answered, homeFolder)
    case 'notify':
      // The tray follows the events and shows this one; the event itself is the delivery.
      return undefined
  }
}
