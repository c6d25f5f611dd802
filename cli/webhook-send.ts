import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { EventDetail } from '../shared/api.ts'
import { readEnvironment, secretsOf } from '../shared/environment.ts'
import { DoorwardError, type ErrorCode, systemCode } from '../shared/errors.ts'
import { loadConfig } from '../shared/load-config.ts'
import type { Webhook } from '../shared/webhook-definition.ts'
import { nearest } from '../shared/nearest.ts'
import { plainLine, plainLines } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { exitFailed } from './exit-code.ts'
import { interruptSignal } from './interrupt.ts'
import { type PostedWebhook, postWebhook } from './post-webhook.ts'
import { withDaemon } from './reach-daemon.ts'
import { readSample, sampleNames } from './samples.ts'
import { signPayload } from './sign-payload.ts'
import type { Terminal } from './terminal.ts'
import { untilFinished } from './until-finished.ts'

export type SendOptions = { readonly sample?: string | true; readonly wait?: boolean }

/**
 * Sends a payload as the sender of the webhook would: signed with the definition's own secret. With
 * `--wait` the agent's answer is printed. Throws what the daemon refused it with.
 */
export const sendWebhook = async (
  context: Context,
  [path, file]: (string | undefined)[],
  options: SendOptions,
): Promise<void> => {
  const { home, terminal } = context
  if (options.sample === true) return listSamples(terminal)
  if (path === undefined)
    throw new DoorwardError('usage', 'the path of a webhook is missing', {
      hint: 'doorward webhook list shows them',
    })
  const env = await readEnvironment(home)
  const webhook = webhookAt(path, (await loadConfig(home, env)).webhooks)
  const payload = await payloadOf(file, options.sample)
  const headers = { ...payload.headers, ...signatureOf(webhook, env, payload.body) }
  await withDaemon(context, async (client) => {
    const url = new URL(webhook.urlPaths[0] ?? webhook.path, client.daemon.url)
    if (!options.wait) {
      printPosted(await postWebhook(url, headers, payload.body), terminal)
      return
    }
    const send = async () => {
      const posted = await postWebhook(url, headers, payload.body)
      terminal.say(`${posted.id} ${posted.status}`)
      return posted.id
    }
    printFinished(await untilFinished(client, send, interruptSignal()), terminal)
  })
}

const listSamples = async (terminal: Terminal): Promise<void> => {
  const samples = await sampleNames()
  if (terminal.json) terminal.printJson({ samples })
  else for (const name of samples) terminal.print(name)
}

/** The definition at this path, with or without /webhook. Throws `webhook-not-found` with the nearest. */
export const webhookAt = (path: string, webhooks: readonly Webhook[]): Webhook => {
  const webhook = webhooks.find((known) => known.path === path || known.urlPaths.includes(path))
  if (webhook) return webhook
  const paths = webhooks.map((known) => known.path)
  throw new DoorwardError('webhook-not-found', `no webhook is defined at "${path}"`, {
    hint:
      nearest(path, paths) ??
      (paths.length > 0 ? `one of ${paths.join(', ')}` : 'doorward config edit webhooks'),
  })
}

type Payload = { readonly body: Buffer; readonly headers: Readonly<Record<string, string>> }

const payloadOf = async (file?: string, sampleName?: string): Promise<Payload> => {
  if (sampleName !== undefined) {
    if (file !== undefined)
      throw new DoorwardError('usage', 'a file and --sample exclude each other')
    const { event, body } = await readSample(sampleName)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/doorward',
      'x-github-event': event,
      'x-github-delivery': randomUUID(),
    }
    return { body, headers }
  }
  if (file === undefined)
    throw new DoorwardError('usage', 'there is no payload to send', {
      hint: 'name a file, - for standard input, or --sample github:pull_request.opened',
    })
  const body = file === '-' ? await buffer(process.stdin) : await readPayload(file)
  return { body, headers: { 'content-type': 'application/json', 'user-agent': 'doorward' } }
}

const readPayload = async (file: string): Promise<Buffer> => {
  try {
    return await readFile(file)
  } catch (error) {
    throw new DoorwardError('usage', `cannot read ${file} (${systemCode(error)})`, { cause: error })
  }
}

/** The headers that the sender of this webhook would sign these bytes with. Throws `unavailable` without a secret. */
export const signatureOf = (
  webhook: Webhook,
  env: NodeJS.ProcessEnv,
  body: Buffer,
): Record<string, string> => {
  if (webhook.secretNames.length === 0) return {}
  const [secret] = secretsOf(webhook.secretNames, env)
  if (secret !== undefined) return signPayload(webhook.signature, secret, body)
  throw new DoorwardError(
    'unavailable',
    `cannot sign for ${webhook.path}: ${webhook.secretNames.join(', ')} is unset or empty`,
    { hint: 'set it in .env of the home folder, or in the environment' },
  )
}

const printPosted = (posted: PostedWebhook, terminal: Terminal): void => {
  if (terminal.json) terminal.printJson(posted)
  else terminal.print(plainLine(`${posted.id} ${posted.status}`))
}

const printFinished = (event: EventDetail, terminal: Terminal): void => {
  if (terminal.json) {
    terminal.printJson(event)
    if (event.state === 'failed' || event.state === 'dropped') process.exitCode = exitFailed
    return
  }
  // What the agent said is the answer even when a delivery failed afterwards.
  if (event.result !== undefined) terminal.print(plainLines(event.result).replace(/\n$/, ''))
  if (event.state === 'failed' || event.state === 'dropped')
    throw new DoorwardError(
      (event.code ?? 'internal') as ErrorCode,
      `${event.id} ${event.state}${event.stage ? ` at ${event.stage}` : ''}${event.detail ? `: ${event.detail}` : ''}`,
      { hint: `doorward events show ${event.id}` },
    )
}
