/**
 * On SIGUSR1 Node opens its debugger to all users of this machine, unless the process listens to it. People
 * send it to daemons to reopen their logs. For processes with tokens in memory.
 */
export const ignoreSigusr1 = (): void => {
  if (!process.listeners('SIGUSR1').includes(ignore)) process.on('SIGUSR1', ignore)
}

const ignore = (): void => undefined

/** The release of systray2 with these programs. */
export const systrayVersion = '2.1.4'

/** systray2's programs by platform, with their hashes. */
export const systrayPrograms: Partial<
  Record<NodeJS.Platform, readonly [name: string, sha256: string]>
> = {
  linux: ['tray_linux_release', 'f61eee19036c0af93e2bb0e5b9fff0bd413469aff5ea1261b8fcfe9e2c027c04'],
  darwin: [
    'tray_darwin_release',
    'b406fe6d13d1ba66f901a07267ecfcf1b615e9c8b3410287be576706bd737791',
  ],
  win32: [
    'tray_windows_release.exe',
    'ae61c63ece1392fc64abbfbd40de782f5b2a7b7d83e93f8b640a20395ae6e8a0',
  ],
}
