import type { StartedDeviceLogin } from '../shared/api.ts'
import { plainLine } from '../shared/text.ts'
import { isSafeToOpen } from '../shared/net.ts'
import { hasBrowser, openBrowser } from './open-browser.ts'
import { isRemoteShell } from './remote-shell.ts'
import { type Waiting, showWaiting } from './show-waiting.ts'
import type { Terminal } from './terminal.ts'

/**
 * Tells the person which page to open and which code to enter there, opens the page where there is a
 * browser, unless not wanted, and shows that it waits until that is stopped. The code goes to
 * the terminal only: what a browser is started with can be read by other users of this machine, and so
 * the page that has the code in it is never opened.
 */
export const helpToEnterCode = async (
  started: StartedDeviceLogin,
  { browser }: { readonly browser: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Waiting> => {
  const { provider, verificationUrl, verificationUrlComplete, userCode } = started
  if (terminal.json) terminal.printJsonLine(started)
  else {
    const code = terminal.paintError('bold', plainLine(userCode))
    terminal.warn(
      `to log in to ${plainLine(provider)}, open this page in any browser, on any machine:\n\n  ${plainLine(verificationUrl)}\n\nand enter this code there:\n\n  ${code}\n`,
    )
    if (verificationUrlComplete !== undefined)
      terminal.say(`the page with the code filled in: ${plainLine(verificationUrlComplete)}\n`)
  }
  const isHere = hasBrowser(process.platform, process.env) && !isRemoteShell(process.env)
  // Another browser does as well, so that nothing is said when none opens.
  if (browser && isHere && isSafeToOpen(verificationUrl))
    await openBrowser(verificationUrl, () => undefined)
  return showWaiting(`waiting for you at ${plainLine(provider)}`, terminal, {
    signal,
    interrupt: 'cancels',
  })
}
