import { existsSync } from 'node:fs'
import { z } from 'zod'
import { accountNameForm, formatLogin } from '../config/name-forms.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { writeFileAtomic } from './files.ts'
import { type Home, readSecretFile } from './home.ts'

/** `accounts.json` of a home: the account that the name of a provider means. */
const fileSchema = z.looseObject({
  version: z.literal(1),
  defaults: z.record(z.string(), z.string().regex(accountNameForm)),
})

/** By provider: the name of its default account. */
export type DefaultAccounts = Readonly<Record<string, string>>

/**
 * Reads `accounts.json`; empty when it does not exist. Throws `home-insecure` or `home-unusable`: without
 * the file, the name of a provider could mean another account than its owner chose.
 */
export const readDefaultAccounts = async (home: Home): Promise<DefaultAccounts> => {
  // Nearly no home has the file, and every request for a token asks.
  if (!existsSync(home.accounts)) return {}
  const text = await readSecretFile(home.accounts)
  if (text === undefined) return {}
  try {
    return fileSchema.parse(JSON.parse(text)).defaults
  } catch {
    throw new DoorwardError('home-unusable', `${home.accounts} is damaged`, {
      hint: 'remove it, and choose again: doorward oauth default PROVIDER ACCOUNT',
    })
  }
}

/** The login that a name means: for `github` perhaps `github@work`; any other name means itself. */
export const resolveLogin = (name: string, defaults: DefaultAccounts): string =>
  Object.hasOwn(defaults, name) ? formatLogin({ provider: name, account: defaults[name] }) : name

/** Changes `accounts.json`, 0600; an undefined account removes the choice. Throws `home-unusable`. */
export const writeDefaultAccount = async (
  home: Home,
  provider: string,
  account: string | undefined,
): Promise<void> => {
  const { [provider]: _, ...others } = await readDefaultAccounts(home)
  const defaults = account === undefined ? others : { ...others, [provider]: account }
  try {
    await writeFileAtomic(home.accounts, `${JSON.stringify({ version: 1, defaults }, null, 2)}\n`)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write ${home.accounts} (${systemCode(error)})`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}
