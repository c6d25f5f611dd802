import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Home, prepareHome } from '../shared/home/home.ts'
import { providerEntry, storedToken } from './stored-token.ts'

/**
 * Fills a home whose daemon has tokens of these providers, each valid for some more milliseconds.
 * `origin` is where a new one would be asked for.
 */
export const writeHomeWithTokens = async (
  home: Home,
  origin: string,
  expiresInMs: Readonly<Record<string, number>>,
): Promise<void> => {
  await prepareHome(home)
  await mkdir(home.config, { recursive: true, mode: 0o700 })
  const write = (name: string, text: string) => writeFile(join(home.config, `${name}.yaml`), text)
  await write('webhooks', 'webhooks: []\n')
  await write('agents', 'agents:\n  echo: { kind: echo }\n')
  const entry = providerEntry(origin)
  const entries = Object.keys(expiresInMs).map((provider) => `  ${provider}: ${entry}\n`)
  await write('gateway', `server: { port: 0 }\nproviders:\n${entries.join('')}`)
  for (const [provider, ms] of Object.entries(expiresInMs))
    await writeFile(
      join(home.tokens, `${provider}.json`),
      JSON.stringify(storedToken(provider, ms)),
      { mode: 0o600 },
    )
}
