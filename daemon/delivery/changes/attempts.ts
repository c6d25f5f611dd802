import { writeFileAtomic } from '../../../shared/home/files.ts'
import { readSecretFile } from '../../../shared/home/home.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import { toDigest } from '../../util/day-journal.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { AgentReply, Sent } from '../sender.ts'
import { findListed, type GithubApi, type GithubRequest } from '../targets/github/github-api.ts'

const daysKept = 30
const keptMs = daysKept * 24 * 3_600_000
const maxLines = 20_000
const maxBytes = 4 * 1024 * 1024

type Line = { readonly digest: string; readonly eventId: string; readonly atMs: number }

/**
 * How often each rule has pushed for a subject within 30 days. The file has hashes, ids of events and times, and is
 * read for each use, as the process before a restart may still write to it.
 */
export class Attempts {
  readonly #path: string
  #last: Promise<unknown> = Promise.resolve()

  constructor(path: string) {
    this.#path = path
  }

  /** Those of other events. Throws `home-insecure`, `home-unusable`. */
  async count(reply: AgentReply): Promise<number> {
    const digest = toSubjectDigest(reply)
    const lines = await this.#read()
    return lines.filter((line) => line.digest === digest && line.eventId !== reply.eventId).length
  }

  /** Each event counts once. Returns a note where the file cannot be written. */
  async note(reply: AgentReply): Promise<string> {
    const noting = this.#last.then(async () => this.#add(toSubjectDigest(reply), reply.eventId))
    this.#last = noting.catch(() => undefined)
    return noting.then(
      () => '',
      () => '; it is not counted for max_attempts, as the disk refused it',
    )
  }

  async #add(digest: string, eventId: string): Promise<void> {
    const lines = await this.#read()
    if (lines.some((line) => line.digest === digest && line.eventId === eventId)) return
    const all = [...lines, { digest, eventId, atMs: Date.now() }].slice(-maxLines)
    const text = all.map((line) => `${line.digest} ${line.eventId} ${line.atMs}\n`).join('')
    await writeFileAtomic(this.#path, text)
  }

  async #read(): Promise<readonly Line[]> {
    const text = (await readSecretFile(this.#path, maxBytes)) ?? ''
    const now = Date.now()
    return text.split('\n').flatMap((line) => {
      const [, digest = '', eventId = '', ms = ''] =
        /^([\w-]{43}) ([\w-]{1,64}) (\d{1,16})$/.exec(line) ?? []
      // A clock that was set back must not count an attempt for longer.
      const atMs = Math.min(Number(ms), now)
      return digest === '' || now - atMs >= keptMs ? [] : [{ digest, eventId, atMs }]
    })
  }
}

const toSubjectDigest = ({ webhook, rule = '', subject }: AgentReply): string =>
  toDigest('attempts', webhook, rule, subject?.key ?? '')

type Asked = {
  readonly request: GithubRequest
  readonly api: GithubApi
  readonly marks: CommentMarks
  readonly reply: AgentReply
  readonly limit: number
  /** `owner/name` and the number of the pull request, where there is one. */
  readonly repository: string
  readonly number: number | undefined
}

/** Asks a person in a comment at the pull request, once. Returns what the event says. */
export const askPerson = async (asked: Asked): Promise<Sent> => {
  const { request, api, marks, reply, limit, repository, number } = asked
  const said = `nothing was pushed: max_attempts is ${limit}, and this rule has pushed as often for the same subject within ${daysKept} days`
  if (number === undefined) return { note: said }
  const comments = `/repos/${repository}/issues/${number}/comments`
  const line = marks.keyLine(JSON.stringify(['attempts', reply.webhook, reply.rule, number]))
  const earlier = await findListed(
    request,
    { path: `${comments}?`, what: 'comments' },
    (comment) => {
      const body = textAt(comment, 'body') ?? ''
      return marks.isOwn(body) && body.includes(line)
    },
  )
  if (earlier !== undefined) return { note: `${said}; a comment at #${number} has asked a person` }
  const words = `Doorward has pushed ${limit === 1 ? 'one change' : `${limit} changes`} for this within ${daysKept} days, and pushes no more. Please have a look: merge, close, or continue by hand.`
  const text = `${line}\n${words}`
  const body = marks.toBody(marks.markFor(reply.eventId, 1, text), text)
  const response = await request(comments, { body: { body } })
  return {
    note: `${said}; a comment at #${number} asks a person`,
    made: api.toMade('comment', response),
  }
}

/** The number of a pull request of the API. */
export const numberOf = (pull: unknown): number | undefined => {
  const number = valueAt(pull, ['number'])
  return typeof number === 'number' ? number : undefined
}
