// Makes the pictures of the documents that need no desktop, in docs/pictures:
//   node scripts/document-pictures.mjs [FOLDER]
// events-follow.svg is the text of a tmux terminal; callback.png is the page after a login at the tests'
// authorization server, in Chromium; page-*.png are views of the page with events of the samples.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { root, setUp } from './setup.mjs'
import { drawTerminal } from './draw-terminal.mjs'

const columns = 110
const rows = 12
const cli = join(root, 'dist', 'cli', 'main.js')

const main = async () => {
  await setUp()
  const target = resolve(process.argv[2] ?? join(root, 'docs', 'pictures'))
  mkdirSync(target, { recursive: true })
  const scratch = mkdtempSync(join(tmpdir(), 'doorward-pictures-'))
  try {
    writeFileSync(join(target, 'events-follow.svg'), await eventsFollow(scratch))
    writeFileSync(join(target, 'callback.png'), await callbackPage())
    for (const [view, picture] of await pageViews())
      writeFileSync(join(target, `page-${view}.png`), picture)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  console.log(`wrote events-follow.svg, callback.png and page-*.png in ${target}`)
}

const eventsFollow = async (scratch) => {
  const home = join(scratch, 'home')
  const env = { ...process.env, DOORWARD_HOME: home, DOORWARD_PORT: '0' }
  const run = (...args) => execFileSync(process.execPath, [cli, ...args], { env, stdio: 'pipe' })
  run('init')
  // Answers with the first line of the prompt.
  run('agent', 'add', 'command', 'reviewer', '--', 'head', '-n', '1')
  run('webhook', 'add', 'github', '--path', '/webhook/reviews', '--agent', 'reviewer')
  run('daemon', 'start')

  const socket = join(scratch, 'tmux')
  const tmux = (...args) =>
    execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], { env, encoding: 'utf8' })
  const screen = () => tmux('capture-pane', '-e', '-p')
  const until = async (pattern) => {
    const end = Date.now() + 20_000
    while (!pattern.test(screen())) {
      if (Date.now() > end) throw new Error(`the terminal never showed ${pattern}:\n${screen()}`)
      await delay(50)
    }
  }
  try {
    tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), 'bash --norc --noprofile')
    const alias = `PS1='$ '; doorward() { '${process.execPath}' '${cli}' "$@"; }; clear`
    tmux('send-keys', alias, 'Enter', 'doorward events --follow', 'Enter')
    await until(/events --follow\s*\n.*\S/)
    await delay(1000)
    const send = (...args) => run('webhook', 'send', '/webhook/reviews', ...args, '--wait')
    send('--sample', 'github:pull_request.opened')
    await until(/done/)
    send('--sample', 'github:push')
    await until(/filtered/)
    const [{ url }] = JSON.parse(run('webhook', 'list', '--json')).webhooks.slice(-1)
    await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    await until(/rejected/)
    return drawTerminal(screen(), { columns, title: 'doorward events --follow' })
  } finally {
    spawnSync('tmux', ['-S', socket, 'kill-server'])
    run('daemon', 'stop')
  }
}

const callbackPage = async () => {
  const support = (name) => import(`../dist/test/support/${name}.js`)
  const { startAuthorizationServer } = await support('providers/authorization-server')
  const { startOAuthApp } = await support('providers/oauth-app')
  const { launchChromium } = await support('desktop/chromium')
  const { removeTemporaryFolders } = await support('temporary')
  const server = await startAuthorizationServer()
  server.answer = 'page'
  const app = await startOAuthApp({
    gateway: {
      providers: {
        google: { issuer: server.issuer, scopes: ['openid', 'email'], client_id: 'public' },
      },
    },
  })
  const browser = await launchChromium()
  try {
    const page = await browser.newPage({ viewport: { width: 720, height: 480 } })
    const { loginId, authorizationUrl } = await app.start({ provider: 'google' })
    await page.goto(authorizationUrl)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { level: 1 }).waitFor()
    await app.ended(loginId)
    return await page.screenshot()
  } finally {
    await browser.close()
    await app.close()
    await server.close()
    await removeTemporaryFolders()
  }
}

/** Views of the page of a daemon that has run a few samples. */
const pageViews = async () => {
  const support = (name) => import(`../dist/test/support/${name}.js`)
  const { startDaemon, untilFinished } = await support('daemon/daemon')
  const { sendJson, startScriptedProvider } = await support('providers/scripted-provider')
  const { launchChromium } = await support('desktop/chromium')
  const { openView } = await support('desktop/page')
  const { removeTemporaryFolders } = await support('temporary')
  const usage = { inputTokens: 14_200, outputTokens: 910, costUsd: 0.11, model: 'a-model' }
  const model = await startScriptedProvider(() => ({
    '/': (response) => sendJson(response, 200, { text: 'The change is safe to merge.', usage }),
  }))
  const daemon = await startDaemon({
    env: 'GITHUB_WEBHOOK_SECRET=a secret of these pictures\n',
    agents: `agents:\n  reviewer: { kind: http, url: "${model.origin}/", answer_path: text, usage_path: usage }\n`,
    webhooks: `webhooks:
  - path: /webhook/github
    signature_scheme: github
    secret_env: GITHUB_WEBHOOK_SECRET
    rules:
      - { name: review, on: pull_request, agent: reviewer, prompt_template: "{{event.pull_request.title}}", deliver_to: "file:answers.md" }
      - { name: triage, on: issues, agent: reviewer, prompt_template: "{{event.issue.title}}", deliver_to: "file:answers.md" }
`,
  })
  const env = { ...process.env, DOORWARD_HOME: daemon.home.root }
  const browser = await launchChromium()
  try {
    for (const sample of ['pull_request.opened', 'issues.opened', 'push', 'pull_request.opened']) {
      const words = ['webhook', 'send', '/webhook/github', '--sample', `github:${sample}`, '--json']
      const sent = JSON.parse(
        execFileSync(process.execPath, [cli, ...words], { env, stdio: 'pipe' }),
      )
      await untilFinished(daemon, sent.id)
    }
    const { page } = await openView(browser, daemon, '/ui/events', {
      width: 1100,
      colorScheme: 'light',
    })
    const pictures = []
    for (const view of ['events', 'usage']) {
      await page.goto(`${daemon.url}/ui/${view}`)
      pictures.push([view, await page.screenshot()])
    }
    return pictures
  } finally {
    await browser.close()
    await daemon.stop()
    model.close()
    await removeTemporaryFolders()
  }
}

await main()
