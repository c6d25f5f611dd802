/*
 * The programs that can show the icon. systray2 brings one for each system, made for x86-64; on
 * Linux a program of our own takes its place where that one cannot run.
 */

export type TrayProgram = 'packaged' | 'own'

/**
 * Which programs to try on this machine, in this order. On Linux the packaged one needs an x86-64
 * processor, an X display and GTK; our own needs a session bus with a panel that hosts
 * StatusNotifierItem. `DOORWARD_TRAY_PROGRAM=own` or `packaged` chooses one.
 */
export const trayProgramsFor = (
  platform: NodeJS.Platform,
  arch: string,
  env: NodeJS.ProcessEnv,
): TrayProgram[] => {
  if (platform !== 'linux') return ['packaged']
  const wanted = env['DOORWARD_TRAY_PROGRAM']
  if (wanted === 'own' || wanted === 'packaged') return [wanted]
  return arch === 'x64' && env['DISPLAY'] ? ['packaged', 'own'] : ['own']
}
