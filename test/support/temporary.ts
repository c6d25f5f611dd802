import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type Home, resolveHome } from '../../shared/home/home.ts'

const made: string[] = []

/** A new empty folder (0700), removed when the test run ends. */
export const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-test-'))
  made.push(folder)
  return folder
}

export type HomeFiles = {
  readonly webhooks?: string
  readonly agents?: string
  readonly gateway?: string
  readonly schedules?: string
  /** The `.env` file. */
  readonly env?: string
}

/** A home with these files; without `agents` there is one, `echo`. Ports are free ones. */
export const temporaryHome = async (files: HomeFiles = {}): Promise<Home> =>
  homeIn(await temporaryFolder(), files)

/** The same in a folder that is there. */
export const homeIn = async (folder: string, files: HomeFiles = {}): Promise<Home> => {
  const home = resolveHome(folder)
  await mkdir(home.config, { recursive: true, mode: 0o700 })
  const write = (name: string, text: string) => writeFile(join(home.config, `${name}.yaml`), text)
  await write('webhooks', files.webhooks ?? 'webhooks: []\n')
  await write('agents', files.agents ?? 'agents:\n  echo: { kind: echo }\n')
  await write('gateway', files.gateway ?? 'oauth: { callback_port: 0 }\n')
  if (files.schedules !== undefined) await write('schedules', files.schedules)
  await writeFile(home.env, files.env ?? '', { mode: 0o600 })
  return home
}

/** The files below a folder, by their path in it, sorted; folders alone do not count. */
export const filesIn = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

/** Removes every folder made here; called once by the root hook. */
export const removeTemporaryFolders = async (): Promise<void> => {
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
}
