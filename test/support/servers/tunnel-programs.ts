import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type TunnelName, tunnelPrograms } from '../../../shared/api/tunnel.ts'
import { isAlive } from '../../../shared/home/lock.ts'
import { temporaryFolder } from '../temporary.ts'
import { makeCertificates } from './private-network.ts'

type Run = {
  readonly name: TunnelName
  readonly pid: number
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

/** Programs for tunnels on a PATH of their own; each stands for its service too (see `tunnel-program.ts`). */
export type TunnelPrograms = {
  /** For a daemon that is to find them and to trust their addresses. */
  readonly env: Readonly<Record<string, string>>
  /** The service refuses from now on, in this way. */
  readonly refuse: (state: string) => Promise<void>
  /** Stays connected and brings nothing. */
  readonly isDead: (is: boolean) => Promise<void>
  readonly runs: () => readonly Run[]
  /** Those that open a tunnel and still run. */
  readonly running: () => readonly Run[]
  /** Starts one by hand, as its user would. */
  readonly startByHand: (
    name: TunnelName,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ) => void
  /** Kills those that a failed test left. */
  readonly close: () => void
}

const program = fileURLToPath(new URL('tunnel-program.js', import.meta.url))

export const makeTunnelPrograms = async (
  names: readonly TunnelName[] = tunnelPrograms,
): Promise<TunnelPrograms> => {
  const folder = await temporaryFolder()
  const at = (name: string) => join(folder, name)
  const { caFile, key, cert } = await makeCertificates()
  await writeFile(at('key'), key)
  await writeFile(at('cert'), cert)
  await mkdir(at('bin'))
  for (const name of names) {
    const text = `#!/bin/sh\nexec '${process.execPath}' '${program}' ${name} '${folder}' "$@"\n`
    await writeFile(join(at('bin'), name), text)
    await chmod(join(at('bin'), name), 0o755)
  }
  const env = {
    PATH: ['/usr/bin', '/bin', at('bin')].join(delimiter),
    // Its configuration files are looked for there.
    HOME: folder,
    NODE_EXTRA_CA_CERTS: caFile,
  }
  const runs = () =>
    (existsSync(at('runs')) ? readFileSync(at('runs'), 'utf8') : '')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Run)
  const running = () => runs().filter(({ pid, args }) => !args.includes('--json') && isAlive(pid))
  return {
    env,
    refuse: async (state) => writeFile(at('state'), state),
    isDead: async (is) => (is ? writeFile(at('dead'), '') : rm(at('dead'), { force: true })),
    runs,
    running,
    startByHand: (name, args, more) =>
      void spawn(join(at('bin'), name), args, { env: { ...env, ...more }, stdio: 'ignore' }),
    close: () => {
      for (const { pid } of running()) process.kill(pid, 'SIGKILL')
    },
  }
}
