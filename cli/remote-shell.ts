import { shellWord } from './shell-word.ts'

/** Who runs this command where, as far as it takes to come here from another machine. */
export type Place = { readonly user: string; readonly hostname: string }

/** True in a shell that came over ssh, by the variables that sshd(8) sets. */
export const isRemoteShell = (env: NodeJS.ProcessEnv): boolean =>
  Boolean(env['SSH_CONNECTION'] || env['SSH_TTY'])

/**
 * The command that lets a browser on the other machine reach a port of this one: run there, it carries
 * the port over ssh, to the address that this shell's own connection came to.
 */
export const tunnelCommand = (
  port: string,
  env: NodeJS.ProcessEnv,
  { user, hostname }: Place,
): string => {
  const [, , address, sshPort] = (env['SSH_CONNECTION'] ?? '').split(' ')
  const host = address && /^[\da-f.:]+$/i.test(address) ? address : hostname
  const otherPort = sshPort && /^\d+$/.test(sshPort) && sshPort !== '22' ? `-p ${sshPort} ` : ''
  return `ssh -N -L ${port}:127.0.0.1:${port} ${otherPort}${shellWord(`${user}@${host}`)}`
}
