import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect, nkeyAuthenticator } from '@nats-io/transport-node'
import type { EventDetail, Status } from '../../../shared/api/api.ts'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type MachineOptions, newQueueKey, startMachine } from '../../support/daemon/machines.ts'
import { send } from '../../support/servers/http.ts'
import { documentedAccounts, newOperator, newUser } from '../../support/servers/nats-users.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import { makeCertificates } from '../../support/servers/private-network.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('the ways into a broker', () => {
  const running: { stop: () => Promise<unknown> }[] = []
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.stop()
  })
  const start = async (options: Omit<MachineOptions, 'webhooks'>): Promise<RunningDaemon> => {
    const webhooks =
      options.role === 'worker'
        ? {}
        : {
            webhooks: 'webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{event.n}}" }\n',
          }
    const daemon = await startMachine({ ...webhooks, ...options })
    running.push(daemon)
    return daemon
  }
  const startServer = async (config: string): Promise<Broker> => {
    const broker = await startBroker(config)
    running.push(broker)
    return broker
  }
  const post = async ({ url }: RunningDaemon) => {
    const headers = { 'content-type': 'application/json' }
    return send(`${url}/a`, { headers, body: JSON.stringify({ n: 'hello' }) })
  }
  const runOn = async (receiver: RunningDaemon): Promise<EventDetail> => {
    const reply = await post(receiver)
    assert.equal(reply.status, 202, reply.text)
    return untilFinished(receiver, String(reply.json()['id']))
  }
  const worksOn = async (receiver: RunningDaemon): Promise<void> => {
    const { state, result } = await runOn(receiver)
    assert.deepEqual([state, result], ['done', 'hello'])
  }

  it('are a token, and no other', async () => {
    const broker = await startServer('authorization { token: "a-good-token" }')
    const shared = {
      servers: broker.url,
      key: newQueueKey(),
      role: 'both',
    } as const
    const queue = 'token_env: QUEUE_TOKEN'
    await worksOn(
      await start({
        ...shared,
        queue,
        variables: { QUEUE_TOKEN: 'a-good-token' },
      }),
    )
    const other = await start({
      ...shared,
      queue,
      variables: { QUEUE_TOKEN: 'a-bad-token' },
    })
    const refused = await post(other)
    assert.equal(refused.status, 503)
    assert.ok(Number(refused.headers['retry-after']) > 0)
    const { problems } = await other.client.get<Status>('/status')
    assert.match(JSON.stringify(problems), /queue-unreachable.*does not accept the credentials/)
    assert.doesNotMatch(
      JSON.stringify(problems) + (await readFile(other.home.log, 'utf8')),
      /a-bad-token/,
    )
  })

  it('are a .creds file, as its text and as its path', async () => {
    const { config, creds } = newOperator()
    const broker = await startServer(config)
    const path = join(await temporaryFolder(), 'user.creds')
    await writeFile(path, creds, { mode: 0o600 })
    const key = newQueueKey()
    for (const value of [creds, path])
      await worksOn(
        await start({
          servers: broker.url,
          key,
          role: 'both',
          queue: 'creds_env: QUEUE_CREDS',
          variables: { QUEUE_CREDS: value },
        }),
      )
  })

  it('are an nkey over TLS, by the configuration in the documents, and no worker reads an answer', async () => {
    const [receiver, worker, other] = [newUser(), newUser(), newUser()]
    const certificates = await makeCertificates(['localhost'])
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'cert.pem'), certificates.cert)
    await writeFile(join(folder, 'key.pem'), certificates.key, { mode: 0o600 })
    const { tls, accounts } = await documentedAccounts(receiver.publicKey, {
      [worker.publicKey]: ['echo'],
      [other.publicKey]: ['another'],
    })
    const config = tls.replaceAll('/etc/nats/', `${folder}/`) + accounts
    const broker = await startServer(config)
    const shared = {
      servers: `tls://localhost:${broker.port}`,
      key: newQueueKey(),
      queue: 'nkey_env: QUEUE_SEED\nca_env: QUEUE_CA',
    }
    const ca = { QUEUE_CA: certificates.caFile }
    const receiverDaemon = await start({
      ...shared,
      role: 'receiver',
      variables: { ...ca, QUEUE_SEED: receiver.seed },
    })
    await start({
      ...shared,
      role: 'worker',
      variables: { ...ca, QUEUE_SEED: worker.seed },
    })
    await worksOn(receiverDaemon)

    const spy = await connect({
      servers: shared.servers,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(other.seed)),
      tls: { caFile: certificates.caFile },
    })
    running.push({ stop: async () => spy.close() })
    const heard: string[] = []
    spy.subscribe('>', { callback: (_, { subject }) => void heard.push(subject) })
    await spy.flush()
    await worksOn(receiverDaemon)
    await spy.flush()
    assert.deepEqual(
      heard.filter((subject) => subject !== 'doorward.machines'),
      [],
    )
  })

  it('open with every key of the list, while keys are replaced', async () => {
    const broker = await startServer('')
    const [older, newer] = [newQueueKey(), newQueueKey()]
    const servers = broker.url
    await start({ servers, key: `${older},${newer}`, role: 'worker' })
    const receiver = await start({
      servers,
      key: `${newer},${older}`,
      role: 'receiver',
    })
    await worksOn(receiver)
    await start({ servers, key: newQueueKey(), role: 'receiver' })
    const { problems } = await untilProblem(receiver)
    assert.match(JSON.stringify(problems), /queue-key.*different queue key/)
  })
})

/** The machines report themselves when they connect, and every 10 seconds. */
const untilProblem = async ({ client }: RunningDaemon): Promise<Status> => {
  for (;;) {
    const status = await client.get<Status>('/status')
    if (status.broker?.problem !== undefined) return status
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
