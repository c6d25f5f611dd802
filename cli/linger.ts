import { existsSync } from 'node:fs'

/**
 * What to say where nobody logs in at a screen: systemd ends what a person runs with the last session,
 * unless the person lingers (loginctl(1)). Undefined when it needs no saying.
 */
export const lingerHint = (env: NodeJS.ProcessEnv): string | undefined => {
  const hasDesktop = Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
  const name = env['USER'] ?? env['LOGNAME'] ?? ''
  if (hasDesktop || (name !== '' && existsSync(`/var/lib/systemd/linger/${name}`))) return undefined
  return 'hint: it runs from your login to your logout; to have it run from boot: loginctl enable-linger'
}
