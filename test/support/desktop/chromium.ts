import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type Page, chromium } from 'playwright-core'

/** For looking at; kept after the run, until the next build. */
export const pictures = fileURLToPath(new URL('../../../screenshots/', import.meta.url))

/** Linux has it as a package; elsewhere the path of one must be given. */
export const chromiumPath =
  process.env['CHROMIUM'] ?? (process.platform === 'linux' ? '/usr/bin/chromium' : undefined)

/** The system's Chromium, which asks nobody for anything by itself. */
export const launchChromium = async (): Promise<Browser> => {
  await mkdir(pictures, { recursive: true })
  return chromium.launch({
    executablePath: chromiumPath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

export type Look = { readonly width: number; readonly colorScheme: 'light' | 'dark' }

export type Window = {
  readonly page: Page
  /** What the browser complained about. */
  readonly complaints: readonly string[]
  readonly close: () => Promise<void>
}

/** A window of a browser that nobody has used. */
export const openWindow = async (browser: Browser, look: Look): Promise<Window> => {
  const context = await browser.newContext({
    viewport: { width: look.width, height: 720 },
    colorScheme: look.colorScheme,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { page, complaints, close: () => context.close() }
}

/** Keeps a picture of the whole page to be looked at. */
export const takePicture = async (page: Page, name: string): Promise<void> => {
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true })
}
