import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes into a folder what `gh auth login` leaves there. Returns an environment for gh. */
export const writeGhConfig = async (folder: string): Promise<NodeJS.ProcessEnv> => {
  const login = { oauth_token: `gho_${'x'.repeat(36)}`, user: 'bench', git_protocol: 'https' }
  // JSON is YAML too.
  await writeFile(join(folder, 'hosts.yml'), JSON.stringify({ 'github.com': login }), {
    mode: 0o600,
  })
  // Those would win over the file.
  const { GH_TOKEN: _, GITHUB_TOKEN: __, ...env } = process.env
  return { ...env, GH_CONFIG_DIR: folder, GH_NO_UPDATE_NOTIFIER: '1' }
}
