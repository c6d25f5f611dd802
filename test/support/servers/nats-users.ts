import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { nkeys } from '@nats-io/transport-node'
import { packageFolder } from '../../../shared/version.ts'

/* Users of a broker, as `nsc` makes them: by key pair, and by a JWT that an account has signed. */

type KeyPair = ReturnType<typeof nkeys.createUser>

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

/** A key pair: the public part is for the broker, the seed for its owner. */
export const newUser = (): { readonly publicKey: string; readonly seed: string } => {
  const pair = nkeys.createUser()
  return { publicKey: pair.getPublicKey(), seed: text(pair.getSeed()) }
}

/**
 * The accounts of the documents, with these agents for each worker, by public key. `tls` is the line before them.
 */
export const documentedAccounts = async (
  receiver: string,
  workers: Readonly<Record<string, readonly string[]>>,
): Promise<{ readonly tls: string; readonly accounts: string }> => {
  const document = await readFile(new URL('docs/several-machines.md', packageFolder), 'utf8')
  const [, tls = '', start = '', worker = '', ofAgent = '', end = ''] =
    /^(tls .*\n)(accounts [^]*?)^(  WORKER1 [^]*?)^ *# For each[^\n]*\n([^]*?)^(    \]\n  \}\n)\}\n```/m.exec(
      document,
    ) ?? []
  const accounts = Object.entries(workers).map(([key, agents], index) => {
    const lines = agents.map((agent) => ofAgent.replaceAll('.review', `.${agent}`)).join('')
    const all = worker.replace('WORKER1', `WORKER${index + 1}`).replace('UWORKER', key)
    return `${all}${lines}${end}`
  })
  return { tls, accounts: `${start.replace('URECEIVER', receiver)}${accounts.join('')}}\n` }
}

/** The configuration of a broker that an operator runs, and the `.creds` of a user of its account. */
export const newOperator = (): { readonly config: string; readonly creds: string } => {
  const operator = nkeys.createOperator()
  const newAccount = (type: object) => {
    const pair = nkeys.createAccount()
    const key = pair.getPublicKey()
    const unlimited = { subs: -1, data: -1, payload: -1, conn: -1, leaf: -1, wildcards: true }
    const limits = { ...unlimited, imports: -1, exports: -1, ...type }
    return { pair, key, line: `${key}: ${sign(operator, key, { type: 'account', limits })}` }
  }
  const [system, account] = [
    newAccount({}),
    newAccount({ mem_storage: -1, streams: -1, consumer: -1 }),
  ]
  const user = nkeys.createUser()
  const claims = { type: 'user', subs: -1, data: -1, payload: -1 }
  return {
    config: `
operator: ${sign(operator, operator.getPublicKey(), { type: 'operator' })}
system_account: ${system.key}
resolver: MEMORY
resolver_preload: { ${system.line}, ${account.line} }
`,
    creds: `-----BEGIN NATS USER JWT-----
${sign(account.pair, user.getPublicKey(), claims)}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${text(user.getSeed())}
------END USER NKEY SEED------
`,
  }
}

const sign = (by: KeyPair, subject: string, nats: object): string => {
  const encode = (value: object | Uint8Array): string =>
    Buffer.from(value instanceof Uint8Array ? value : JSON.stringify(value)).toString('base64url')
  const claims = {
    iss: by.getPublicKey(),
    sub: subject,
    iat: Math.floor(Date.now() / 1000),
    nats: { ...nats, version: 2 },
  }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('base64url')
  const head = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode({ ...claims, jti })}`
  return `${head}.${encode(by.sign(Buffer.from(head)))}`
}
