import { execFile, execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'
import { promisify } from 'node:util'
import { version } from '../shared/version.ts'
import { versionsOfOpenclaw } from './openclaw-folder.ts'

const run = promisify(execFile)

/** Servers run on the first core and the load on the last, so that they do not compete. */
export const serverCore = '0'
const loadCore = String(cpus().length - 1)
export const allCores = `0-${loadCore}`

/** Puts this process, and what it starts from now on, on the core of the load. */
export const moveToLoadCore = (): void => {
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', loadCore, String(process.pid)])
}

/** Programs of other people that are looked for on PATH; what is missing is left out and named. */
export const hasProgram = async (name: string): Promise<boolean> =>
  run('which', [name]).then(
    () => true,
    () => false,
  )

/** One line for each thing that a figure depends on. */
export const describeMachine = async (): Promise<string[]> => {
  const [first] = cpus()
  const gigabytes = (totalmem() / 1e9).toFixed(0)
  return [
    `${cpus().length} × ${first?.model.trim() ?? 'unknown'}, ${gigabytes} GB, Linux ${release()}`,
    `doorward ${version}, node ${process.version}, wrk ${await packageVersion('wrk')}`,
    `adnanh/webhook ${await packageVersion('webhook')}, oidc-agent ${await packageVersion('oidc-agent-cli')}, gh ${await packageVersion('gh')}`,
    ...openclawVersions(),
    `servers on core ${serverCore}, load on core ${loadCore}`,
  ]
}

const openclawVersions = (): string[] => {
  const versions = versionsOfOpenclaw()
  return versions ? [`openclaw ${versions.openclaw} on node v${versions.node}`] : []
}

const packageVersion = async (name: string): Promise<string> =>
  run('dpkg-query', ['--show', '--showformat', '${Version}', name]).then(
    ({ stdout }) => stdout,
    () => 'not from a Debian package',
  )
