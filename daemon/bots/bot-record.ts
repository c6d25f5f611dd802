import { existsSync } from 'node:fs'
import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { BotAbility } from '../../shared/api/bots.ts'
import { parseLogin } from '../../shared/config/name-forms.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { syncFolder, writeFileAtomic } from '../../shared/home/files.ts'
import { readSecretFile } from '../../shared/home/home.ts'
import { openTokenFile, type TokenHome } from '../oauth/tokens/keychain.ts'
import { isSealed } from '../oauth/tokens/sealed-file.ts'
import { tokenProviders } from '../oauth/tokens/token-store.ts'

/**
 * A GitHub App of the owner, in `clients/github@<slug>.json`, 0600, sealed as token files are. It belongs to
 * the API that made it: its key proves itself nowhere else, whatever gateway.yaml says later.
 */
const botRecordSchema = z.looseObject({
  kind: z.literal('app'),
  version: z.literal(1),
  slug: z.string(),
  name: z.string(),
  appId: z.int(),
  clientId: z.string(),
  clientSecret: z.string(),
  /** PEM. */
  privateKey: z.string(),
  /** The account that owns it. */
  owner: z.string(),
  /** Without a slash at the end: `https://api.github.com`, or `<URL>/api/v3`. */
  apiUrl: z.string(),
  /** Its public page. */
  pageUrl: z.string(),
  /** The page with its settings. */
  settingsUrl: z.string(),
  can: z.enum(['review', 'fix'] satisfies BotAbility[]),
  /** The address to which GitHub sends deliveries. */
  hookUrl: z.string(),
  createdAt: z.iso.datetime(),
})
export type BotRecord = z.infer<typeof botRecordSchema>

/** `github@<slug>`, the name of its login. */
export const toBotLogin = (slug: string): string => `github@${slug}`

/** The login of a bot that a person names by its slug or its login; undefined for anything else. */
export const parseBotName = (text: string): string | undefined => {
  const login = parseLogin(text.includes('@') ? text : toBotLogin(text))
  return login?.provider === 'github' && login.account !== undefined ? login.account : undefined
}

const toPath = (home: TokenHome, slug: string): string =>
  join(home.clients, `${toBotLogin(slug)}.json`)

const toLabel = (slug: string): string => `app ${toBotLogin(slug)}`

/**
 * The bot of this slug; undefined where the file is missing or is the OAuth client of an account. Throws
 * `keychain-unavailable`, and `token-file-damaged` for a file that cannot be read.
 */
export const readBot = async (home: TokenHome, slug: string): Promise<BotRecord | undefined> => {
  const path = toPath(home, slug)
  if (!existsSync(path)) return undefined
  const text = await readSecretFile(path)
  if (text === undefined || !(isSealed(text) || isApp(text))) return undefined
  const opened = openTokenFile(home, path, toLabel(slug), text)
  const record = typeof opened === 'object' ? parseRecord(opened.text, slug) : undefined
  if (record) return record
  const why =
    opened === 'key-lost' ? 'is sealed with a key that the keychain does not have' : 'is damaged'
  throw new DoorwardError('token-file-damaged', `${path} ${why}: the bot cannot be used`, {
    hint: `restore the file, or: doorward bot remove ${slug}, then doorward bot create github`,
    about: { provider: toBotLogin(slug) },
  })
}

/** True where a bot, or a login of a person, has this name: their files have the same one. */
export const isTaken = async (home: TokenHome, slug: string): Promise<boolean> =>
  existsSync(toPath(home, slug)) || (await tokenProviders(home)).includes(toBotLogin(slug))

/** Throws `home-unusable`. */
export const writeBot = async (home: TokenHome, record: BotRecord): Promise<void> => {
  const path = toPath(home, record.slug)
  const text = `${JSON.stringify(record, null, 2)}\n`
  try {
    await writeFileAtomic(path, home.keychain?.seal(toLabel(record.slug), text) ?? text)
  } catch (error) {
    throw new DoorwardError('home-unusable', `cannot write ${path} (${systemCode(error)})`, {
      cause: error,
      hint: 'make the folder writable for you and see that the disk is not full',
    })
  }
}

export const removeBot = async (home: TokenHome, slug: string): Promise<void> => {
  await unlink(toPath(home, slug))
  await syncFolder(home.clients)
}

/** The slugs of all bots, sorted: of sealed files too, whose key may not be known yet. */
export const listBots = async (home: TokenHome): Promise<string[]> => {
  const slugs: string[] = []
  for (const file of await readdir(home.clients).catch(() => [])) {
    const slug = file.endsWith('.json') ? parseBotName(file.slice(0, -'.json'.length)) : undefined
    if (slug === undefined || !file.includes('@')) continue
    const text = await readSecretFile(join(home.clients, file)).catch(() => undefined)
    if (text !== undefined && (isSealed(text) || isApp(text))) slugs.push(slug)
  }
  return slugs.toSorted((a, b) => a.localeCompare(b))
}

/** Seals the plain files, or makes the sealed ones plain, as the configuration says. */
export const convertBots = async (home: TokenHome): Promise<void> => {
  for (const slug of await listBots(home)) {
    const text = await readSecretFile(toPath(home, slug)).catch(() => undefined)
    if (text === undefined || !home.keychain?.isOutdated(text)) continue
    const record = await readBot(home, slug).catch(() => undefined)
    if (record) await writeBot(home, record)
  }
}

/** Only files of bots are sealed in this folder. */
export const hasSealedBots = async (home: TokenHome): Promise<boolean> => {
  for (const slug of await listBots(home)) {
    const text = await readSecretFile(toPath(home, slug)).catch(() => undefined)
    if (text !== undefined && isSealed(text)) return true
  }
  return false
}

const isApp = (text: string): boolean => {
  try {
    return (JSON.parse(text) as { readonly kind?: unknown } | null)?.kind === 'app'
  } catch {
    return false
  }
}

const parseRecord = (text: string, slug: string): BotRecord | undefined => {
  try {
    const record = botRecordSchema.parse(JSON.parse(text))
    return record.slug === slug ? record : undefined
  } catch {
    // The parser's own message can quote the file, and with it the key.
    return undefined
  }
}
