import { DoorwardError } from '../../shared/errors.ts'
import { toMessages } from './message-parts.ts'
import type { AgentReply, ResolvedTarget, Sender } from './sender.ts'
import { toSection } from './targets/file.ts'
import { toBlock } from './targets/log.ts'

/*
 * The text that a target would get: made by the code that sends, and sent nowhere.
 */

export type Preview = (target: ResolvedTarget, reply: AgentReply) => Promise<string>

const between = '\n\n[next message]\n\n'

export const createPreview =
  (senders: Readonly<Record<string, Sender>>): Preview =>
  async (target, reply) => {
    switch (target.kind) {
      case 'invalid':
        return `(${target.error.message})`
      case 'log':
        return toBlock(reply)
      case 'file':
        return toSection(reply)
      case 'notify':
        return reply.text
      default: {
        const { address, values } = target
        const { preview, server } = senders[target.kind] ?? {}
        try {
          const parts = toMessages(target, reply, server)
          if (!preview) return parts.join(between)
          const shown = parts.map(async (part) => preview({ address, values, text: part, reply }))
          return (await Promise.all(shown)).join(between)
        } catch (error) {
          // It will say so again when it is sent.
          if (error instanceof DoorwardError) return `(${error.message})`
          throw error
        }
      }
    }
  }
