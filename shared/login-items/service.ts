import { DoorwardError } from '../errors.ts'
import { runTool } from './run-tool.ts'
import type { Surroundings } from './surroundings.ts'

export type ServiceState = {
  readonly is: 'running' | 'starting' | 'failed' | 'stopped'
  readonly pid?: number
  /** What the daemon ended with last. */
  readonly exitCode?: number
}

/** The daemon as the service manager of the system knows it. */
export type Service = {
  readonly kind: 'systemd' | 'launchd'
  /** The command that a person would start it with. */
  readonly startCommand: string
  /** False in a session that the manager does not serve, such as one of `su`. */
  readonly answers: () => Promise<boolean>
  /** Takes notice of files that were written or removed. */
  readonly reload: () => Promise<void>
  /** Returns when the process runs, which is before it listens. Throws `login-item-failed`. */
  readonly start: () => Promise<void>
  /** Returns when it has ended. */
  readonly stop: () => Promise<void>
  readonly state: () => Promise<ServiceState>
}

const refused = (what: string, said: string): DoorwardError =>
  new DoorwardError('login-item-failed', `${what} failed${said ? `: ${said}` : ''}`, {
    hint: 'doorward doctor',
  })

/** A user unit, by systemctl(1). */
export const systemdService = (name: string): Service => {
  const systemctl = (args: readonly string[], timeoutMs?: number) =>
    runTool('systemctl', ['--user', '--no-ask-password', ...args], timeoutMs)
  return {
    kind: 'systemd',
    startCommand: `systemctl --user daemon-reload && systemctl --user start ${name}`,
    answers: async () => (await systemctl(['show', '--property=Version'])).code === 0,
    reload: async () => {
      await systemctl(['daemon-reload'])
    },
    start: async () => {
      // A person asks: what failed too often before does not count.
      await systemctl(['reset-failed', name])
      const { code, said } = await systemctl(['start', name], 60_000)
      if (code !== 0) throw refused(`systemctl --user start ${name}`, said)
    },
    stop: async () => {
      // It has a time limit of its own, which the unit says.
      await systemctl(['stop', name], 24 * 3_600_000)
      await systemctl(['reset-failed', name])
    },
    state: async () => {
      const properties = 'ActiveState,SubState,MainPID,ExecMainStatus'
      const { stdout } = await systemctl(['show', name, `--property=${properties}`])
      const valueOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
      const exitCode = Number(valueOf('ExecMainStatus'))
      const pid = Number(valueOf('MainPID'))
      const active = valueOf('ActiveState')
      // Between two tries systemd calls it activating.
      if (active === 'failed' || valueOf('SubState').startsWith('auto-restart'))
        return { is: 'failed', exitCode }
      if (active === 'active') return { is: 'running', ...(pid > 0 ? { pid } : {}) }
      return { is: active === 'activating' || active === 'reloading' ? 'starting' : 'stopped' }
    },
  }
}

/** A launch agent of the person who is logged in, by launchctl(1). */
export const launchdService = (label: string, path: string, { uid }: Surroundings): Service => {
  const domain = `gui/${uid}`
  const target = `${domain}/${label}`
  const isLoaded = async () => (await runTool('launchctl', ['print', target])).code === 0
  const stop = async () => {
    // The job has a time limit of its own, ExitTimeOut.
    if (await isLoaded()) await runTool('launchctl', ['bootout', target], 24 * 3_600_000)
  }
  return {
    kind: 'launchd',
    startCommand: `launchctl bootstrap ${domain} '${path.replaceAll("'", `'\\''`)}'`,
    answers: async () => (await runTool('launchctl', ['print', domain])).code === 0,
    // What is loaded stays as it was read; a stop unloads it.
    reload: async () => undefined,
    start: async () => {
      await runTool('launchctl', ['enable', target])
      const args = (await isLoaded()) ? ['kickstart', target] : ['bootstrap', domain, path]
      const { code, said } = await runTool('launchctl', args, 60_000)
      if (code !== 0) throw refused(`launchctl ${args[0]} of ${label}`, said)
    },
    stop,
    state: async () => {
      const { code, stdout } = await runTool('launchctl', ['print', target])
      if (code !== 0) return { is: 'stopped' }
      const pid = Number(/^\s*pid = (\d+)$/m.exec(stdout)?.[1] ?? 0)
      if (pid > 0) return { is: 'running', pid }
      const exitCode = Number(/^\s*last exit code = (\d+)/m.exec(stdout)?.[1] ?? 0)
      if (exitCode > 0) return { is: 'failed', exitCode }
      return { is: /^\s*state = spawn/m.test(stdout) ? 'starting' : 'stopped' }
    },
  }
}
