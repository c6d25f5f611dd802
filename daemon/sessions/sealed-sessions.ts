import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { cliKinds } from '../../shared/agents/clis.ts'
import { usageSchema } from '../../shared/api/usage.ts'
import { errorName, systemCode } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import type { Home } from '../../shared/home/home.ts'
import type { Log } from '../log/log.ts'
import { openText, parseKey, type SealKey, sealText } from '../oauth/tokens/sealed-file.ts'
import { createKeyedMutex } from '../util/concurrency.ts'
import { parseJson } from '../util/payload-path.ts'
import type { Session, SessionFiles, Sessions } from './sessions.ts'

/*
 * Conversations on the disk: a file each, sealed with AES-256-GCM. Its name is that of the session, a hash, and is
 * authenticated with it. The key is that of the keychain where tokens.store is, else run/sessions.key.
 */

type SealedParts = {
  readonly home: Pick<Home, 'state' | 'run'>
  readonly isWanted: () => boolean
  /** Whether the key is that of the keychain, which is undefined until the keychain has given it. */
  readonly keychain: () => { readonly isWanted: boolean; readonly key: SealKey | undefined }
  readonly log: Log
}

const text = z.string().max(1000)
const savedSchema = z.object({
  name: z.string(),
  webhook: text,
  rule: text.optional(),
  key: text,
  ttlMs: z.number(),
  agent: text,
  program: text,
  fingerprint: text,
  turns: z.int(),
  startedAt: z.number(),
  usedAt: z.number(),
  event: text,
  why: text.optional(),
  transcript: z
    .object({
      program: z.enum(cliKinds),
      id: text,
      bytes: z.base64().transform((data) => new Uint8Array(Buffer.from(data, 'base64'))),
      totals: z.object(usageSchema.shape).optional(),
    })
    .optional(),
  code: z
    .object({
      commit: text,
      request: z.object({
        repo: text,
        fixed: z.enum(['all', 'host', 'nothing']),
        ref: text,
        base: text.optional(),
        pull: text.optional(),
        login: text.optional(),
        access: z.enum(['read', 'write']),
        depth: z.number().optional(),
      }),
    })
    .optional(),
})

const fileForm = /^([0-9a-f]{64})\.json$/

export class SealedSessions implements SessionFiles {
  readonly #parts: SealedParts
  readonly #withLock = createKeyedMutex()
  #ownKey: SealKey | undefined

  constructor(parts: SealedParts) {
    this.#parts = parts
  }

  isSealing(): boolean {
    return this.#parts.isWanted()
  }

  get #folder(): string {
    return join(this.#parts.home.state, 'sessions')
  }

  save(session: Session): void {
    void this.#inOrder(session.name, async () => {
      if (!this.isSealing()) return
      const key = await this.#findKey()
      // Until the keychain has given its key, a session is in memory alone.
      if (!key) return
      const { transcript } = session
      const saved = {
        ...session,
        ...(transcript && {
          transcript: { ...transcript, bytes: Buffer.from(transcript.bytes).toString('base64') },
        }),
      }
      await mkdir(this.#folder, { recursive: true, mode: 0o700 })
      const sealed = sealText(key, toLabel(session.name), JSON.stringify(saved))
      await writeFileAtomic(this.#pathOf(session.name), sealed)
    })
  }

  remove(name: string): void {
    void this.#inOrder(name, async () => rm(this.#pathOf(name), { force: true }))
  }

  /** Resolves when what was begun is written. */
  async settled(): Promise<void> {
    await this.#inOrder('', async () => undefined)
  }

  /** Follows `sessions.store`: saves all, or removes the files. */
  async configured(sessions: Sessions): Promise<void> {
    if (!this.isSealing()) return this.load(sessions)
    for (const session of sessions.snapshot()) this.save(session)
  }

  /** Reads all files into the memory. One that does not open, as its key is gone or it is damaged, is removed. */
  async load(sessions: Sessions): Promise<void> {
    const names = await readdir(this.#folder).catch(() => [])
    if (!this.isSealing()) {
      if (names.length > 0) await rm(this.#folder, { recursive: true, force: true })
      return
    }
    const key = await this.#findKey().catch((error: unknown) => {
      this.#parts.log.warn(
        { error: errorName(error) },
        'the key of sealed conversations cannot be read',
      )
      return undefined
    })
    if (!key) return
    let lost = 0
    for (const file of names) {
      const [, name] = fileForm.exec(file) ?? []
      if (name === undefined) continue
      const session = await this.#read(key, name)
      if (session) sessions.restore([session])
      else {
        lost += 1
        sessions.noteLost(name)
        await rm(this.#pathOf(name), { force: true })
      }
    }
    if (lost > 0) this.#parts.log.warn({ files: lost }, 'sealed conversations could not be opened')
  }

  async #read(key: SealKey, name: string): Promise<Session | undefined> {
    const sealed = await readFile(this.#pathOf(name), 'utf8').catch(() => '')
    const opened = openText(key, toLabel(name), sealed)
    if (opened === undefined || opened === 'other-key') return undefined
    const { success, data } = savedSchema.safeParse(parseJson(opened.text))
    if (!success || data.name !== name) return undefined
    const { code } = data
    const { base, pull, login, depth } = code?.request ?? {}
    return {
      ...data,
      rule: data.rule,
      code: code && { ...code, request: { ...code.request, base, pull, login, depth } },
    }
  }

  /** The key of the keychain, or our own, which is made when it is first needed. */
  async #findKey(): Promise<SealKey | undefined> {
    const { isWanted, key } = this.#parts.keychain()
    if (isWanted) return key
    const path = join(this.#parts.home.run, 'sessions.key')
    this.#ownKey ??= parseKey((await readKeyFile(path)).trim())
    if (this.#ownKey) return this.#ownKey
    const made = randomBytes(32).toString('base64')
    try {
      await writeFile(path, `${made}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      // A damaged one opens nothing.
      if (systemCode(error) !== 'EEXIST') throw error
      await writeFileAtomic(path, `${made}\n`)
    }
    this.#ownKey = parseKey(made)
    return this.#ownKey
  }

  #pathOf(name: string): string {
    return join(this.#folder, `${name}.json`)
  }

  /** One write after another, as a removal must not overtake a write. */
  async #inOrder(name: string, write: () => Promise<void>): Promise<void> {
    await this.#withLock('files', async () => {
      try {
        await write()
      } catch (error) {
        const { log } = this.#parts
        log.warn(
          { file: name.slice(0, 12), error: errorName(error) },
          'a conversation was not saved',
        )
      }
    })
  }
}

/** Empty where there is no file. Throws where it cannot be read now: another key would lose what it has sealed. */
const readKeyFile = async (path: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return ''
    throw error
  }
}

const toLabel = (name: string): string => `session ${name}`
