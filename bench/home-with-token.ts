import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Home, prepareHome } from '../shared/home.ts'

/**
 * Fills a home whose daemon has tokens of these providers, each valid for so many milliseconds more.
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
  const entry = `{ authorization_endpoint: "${origin}/a", token_endpoint: "${origin}/t" }`
  const entries = Object.keys(expiresInMs).map((provider) => `  ${provider}: ${entry}\n`)
  await write('gateway', `server: { port: 0 }\nproviders:\n${entries.join('')}`)
  const now = Date.now()
  for (const [provider, ms] of Object.entries(expiresInMs))
    await writeFile(
      join(home.tokens, `${provider}.json`),
      JSON.stringify({
        version: 1,
        provider,
        account: null,
        scopes: ['a', 'b'],
        tokenType: 'Bearer',
        accessToken: 'x'.repeat(200),
        refreshToken: 'y',
        expiresAt: new Date(now + ms).toISOString(),
        obtainedAt: new Date(now).toISOString(),
        clientId: 'id',
      }),
      { mode: 0o600 },
    )
}
