import { copyFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { homeFor } from '../../shared/home/home.ts'

/** Settings and logins; not its histories. */
const copied =
  /^(oauth_creds\.json|google_accounts\.json|gemini-credentials\.json|installation_id|\.env|.*oauth.*\.json|GEMINI\.md)$/

/**
 * Makes a home for one run of Gemini CLI in this folder, with a copy of the settings and logins of the
 * real one: it writes each prompt into a history there, and no flag keeps it from that. The copy of the
 * settings bounds its retries, turns telemetry off, and without granted tools offers it none.
 */
export const geminiHome = async (
  folder: string,
  env: NodeJS.ProcessEnv,
  grantsTools: boolean,
): Promise<Readonly<Record<string, string>>> => {
  const real = join(env['GEMINI_CLI_HOME'] || homeFor(env), '.gemini')
  const own = join(folder, 'home', '.gemini')
  await mkdir(own, { recursive: true, mode: 0o700 })
  for (const name of await readdir(real).catch(() => []))
    if (copied.test(name)) await copyFile(join(real, name), join(own, name)).catch(() => undefined)
  const settings = await readFile(join(real, 'settings.json'), 'utf8').catch(() => '{}')
  await writeFile(join(own, 'settings.json'), quietSettings(settings, grantsTools), { mode: 0o600 })
  return { GEMINI_CLI_HOME: join(folder, 'home') }
}

/** The person's settings (JSON with comments) with ours over them; such that cannot be read are left as they are. */
export const quietSettings = (text: string, grantsTools: boolean): string => {
  const settings = readSettings(text)
  if (settings === undefined) return text
  return JSON.stringify({
    ...settings,
    general: { ...mapIn(settings, 'general'), maxAttempts: 1, checkpointing: { enabled: false } },
    telemetry: { enabled: false },
    ...(!grantsTools && { tools: { ...mapIn(settings, 'tools'), core: [] }, mcpServers: {} }),
  })
}

const readSettings = (text: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(withoutComments(text))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** Strings are matched first, so that a URL in one is no comment. */
const withoutComments = (text: string): string =>
  text.replaceAll(
    /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
    (_, quoted?: string) => quoted ?? '',
  )

const mapIn = (settings: Readonly<Record<string, unknown>>, name: string): object => {
  const value = settings[name]
  return typeof value === 'object' && value !== null ? value : {}
}
