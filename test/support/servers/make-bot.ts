import { resultOf, start, untilSaid } from '../../cli/support/cli.ts'
import type { RunningDaemon } from '../daemon/daemon.ts'
import { browse, visit } from '../desktop/browser.ts'
import type { GithubAppServer } from './github-app-server.ts'

type Places = {
  readonly github: GithubAppServer
  readonly daemon: Pick<RunningDaemon, 'home'>
}

/** Makes a bot by the command line, as a person does who presses both buttons, and installs it. */
export const makeBot = async (
  { github, daemon }: Places,
  words: readonly string[],
  repositories: readonly string[],
) => {
  const command = start(['bot', 'create', 'github', '--no-browser', ...words], {
    home: daemon.home,
  })
  const ended = resultOf(command)
  const [url = ''] = /http:\S+/.exec(await untilSaid(command, 'stderr', /http:\S+\n/)) ?? []
  const before = github.apps.length
  await browse(await pressBoth(url))
  github.install(github.apps[before]?.slug ?? '', repositories)
  return ended
}

/** Opens the page, presses its button and that of GitHub; the address to which GitHub leads back. */
export const pressBoth = async (url: string): Promise<string> => {
  const page = await visit(url, { headers: { 'sec-fetch-dest': 'document' } })
  const { action, manifest } = readForm(page.text)
  const form = await fetch(action, {
    method: 'POST',
    body: new URLSearchParams({ manifest: JSON.stringify(manifest) }),
  })
  const [, confirm = ''] = /action="(\/confirm[^"]*)"/.exec(await form.text()) ?? []
  const confirmed = await fetch(new URL(confirm, action), { method: 'POST', redirect: 'manual' })
  return confirmed.headers.get('location') ?? ''
}

/** What the page posts, and where. */
export const readForm = (html: string) => {
  const plain = (text: string) =>
    text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
  const [, action = ''] = /<form action="([^"]*)"/.exec(html) ?? []
  const [, manifest = ''] = /name="manifest" value="([^"]*)"/.exec(html) ?? []
  return {
    action: plain(action),
    manifest: JSON.parse(plain(manifest)) as {
      readonly name: string
      readonly redirect_url: string
    },
  }
}
