import type { ChildProcess } from 'node:child_process'

/** Whether there is a browser to open: on Linux that takes a display, or a `BROWSER`. */
export const hasBrowser = (platform: NodeJS.Platform, env: NodeJS.ProcessEnv): boolean =>
  platform !== 'linux' ||
  ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER', 'WSL_DISTRO_NAME'].some((name) => env[name])

/** Opens the browser and does not wait for it; `onFailed` is called when that does not work. */
export const openBrowser = async (address: string, onFailed: () => void): Promise<void> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(address)
    child.once('error', onFailed)
    // The program that opens browsers tells only by its exit code that it found none.
    child.once('exit', (code) => {
      if (code) onFailed()
    })
    child.unref()
  } catch {
    onFailed()
  }
}
