import { writeFileAtomic } from '../../../shared/home/files.ts'
import { readSecretFile } from '../../../shared/home/home.ts'
import { isAddress } from '../../../shared/targets/schema.ts'
import { toDigest } from '../../util/day-journal.ts'
import { textAt } from '../../util/payload-path.ts'
import type { TargetResponse } from '../request.ts'
import type { Message } from '../sender.ts'

/** A message, as Slack names it: `C024BE91L` and `1712000000.000100`. */
type PostedMessage = { readonly channel: string; readonly ts: string }

const keptMs = 30 * 24 * 3_600_000
const maxLines = 1000
const maxBytes = 1024 * 1024

type Line = { readonly digest: string; readonly atMs: number; readonly names: readonly string[] }

/**
 * The messages of the last answer of each rule with `update`, in each thread or about each subject, for 30 days. Slack
 * shows the metadata of a message only to an app that may read its whole channel, so a file remembers: hashes, times
 * and the names that Slack gave. It is read for each use, as the process before a restart may still write to it.
 */
export class PostedMessages {
  readonly #path: string
  #last: Promise<unknown> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  /** In the order of the parts. Throws `home-insecure`, `home-unusable`. */
  async list(digest: string): Promise<readonly PostedMessage[]> {
    const lines = await this.#read()
    return (lines.find((line) => line.digest === digest)?.names ?? []).map(toMessage)
  }

  /** Returns a note where the file cannot be written. */
  async keep(digest: string, messages: readonly PostedMessage[]): Promise<string | undefined> {
    const keeping = this.#last.then(async () => this.#replace(digest, messages))
    this.#last = keeping.catch(() => undefined)
    return keeping.then(
      () => undefined,
      () => 'the next answer is posted as a new message, as the disk refused the name of this one',
    )
  }

  async #replace(digest: string, messages: readonly PostedMessage[]): Promise<void> {
    const others = (await this.#read()).filter((line) => line.digest !== digest)
    const names = messages.map(({ channel, ts }) => `${channel}/${ts}`)
    const lines = [...others, { digest, atMs: Date.now(), names }].slice(-maxLines)
    const text = lines.map((line) => `${line.digest} ${line.atMs} ${line.names.join(' ')}\n`)
    await writeFileAtomic(this.#path, text.join(''))
  }

  async #read(): Promise<readonly Line[]> {
    const text = (await readSecretFile(this.#path, maxBytes)) ?? ''
    const now = Date.now()
    return text.split('\n').flatMap((line) => {
      const [digest = '', ms = '', ...names] = line.split(' ')
      const atMs = Math.min(Number(ms), now)
      const isWhole = digest.length === 43 && names.every(isName) && now - atMs < keptMs
      return isWhole ? [{ digest, atMs, names }] : []
    })
  }
}

const isName = (name: string): boolean => isAddress('slack', name) && name.includes('/')

const toMessage = (name: string): PostedMessage => {
  const [channel = '', ts = ''] = name.split('/')
  return { channel, ts }
}

/** The name of the message of a response; undefined where Slack gave none. */
export const findPosted = ({ json }: TargetResponse): PostedMessage | undefined => {
  const [channel = '', ts = ''] = [textAt(json, 'channel'), textAt(json, 'ts')]
  return isName(`${channel}/${ts}`) ? { channel, ts } : undefined
}

/**
 * What names the answer that this one replaces: the last of its rule in the thread, or in the channel about the same
 * subject. Undefined without `update`.
 */
export const toReplacedDigest = ({
  address,
  reply: { updateKey, subject },
}: Pick<Message, 'address' | 'reply'>): string | undefined => {
  if (updateKey === undefined) return undefined
  const about = address.includes('/') ? '' : (subject?.key ?? '')
  return toDigest('slack', updateKey, address, about)
}

export type Replacing = Pick<Message, 'part' | 'isLast'> & {
  readonly digest: string
  readonly posted: PostedMessages
  /** Returns the response also where Slack refuses to edit it. */
  readonly edit: (message: PostedMessage) => Promise<TargetResponse>
  readonly remove: (message: PostedMessage) => Promise<unknown>
  readonly post: () => Promise<TargetResponse>
}

/** Of chat.update (docs.slack.dev/reference/methods/chat.update#errors): another message is posted. */
export const notEditable = [
  'message_not_found',
  'channel_not_found',
  'cant_update_message',
  'edit_window_closed',
] as const

/**
 * Edits the same part of the earlier answer, or posts a message where that is not possible; with the last part, the
 * parts that the earlier answer had more are removed.
 */
export const replaceEarlier = async ({
  digest,
  part,
  isLast,
  posted,
  edit,
  remove,
  post,
}: Replacing): Promise<{ readonly response: TargetResponse; readonly note?: string }> => {
  const earlier = await posted.list(digest)
  const old = earlier[part - 1]
  const edited = old && (await edit(old))
  const refusal = edited && notEditable.find((one) => one === textAt(edited.json, 'error'))
  const isEdited = edited !== undefined && refusal === undefined
  const response = isEdited ? edited : await post()
  const later = earlier.slice(part)
  // An answer that may not be edited stays whole. One whose message was deleted loses its other parts.
  const surplus = (isEdited && isLast) || refusal === 'message_not_found' ? later : []
  const removed = await Promise.allSettled(surplus.map(remove))
  const own = isEdited ? old : findPosted(response)
  const kept = own && [...earlier.slice(0, part - 1), own, ...(isEdited && !isLast ? later : [])]
  const notes = [
    kept && (await posted.keep(digest, kept)),
    removed.some(({ status }) => status === 'rejected')
      ? 'a part of the earlier answer could not be removed'
      : undefined,
  ].filter((note) => note !== undefined)
  return { response, ...(notes.length > 0 && { note: notes.join('; ') }) }
}
