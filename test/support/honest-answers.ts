import { createHash, generateKeyPairSync } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { makeJwt, no } from './made-secrets.ts'

/*
 * Answers as agents write them, with much that looks like a key and is none. Each maker writes another kind of
 * answer; the facts in it differ from one to the next, and are the same in each run.
 */

/** Facts that are drawn from a name and a number. */
export type Facts = {
  readonly bytes: (length: number) => Buffer
  readonly hex: (length: number) => string
  readonly base64: (length: number) => string
  readonly number: (below: number) => number
  readonly one: (list: readonly string[]) => string
  readonly uuid: () => string
  readonly sha: () => string
  readonly path: () => string
  readonly name: () => string
  readonly integrity: () => string
}

const verbs = 'read write fetch parse retry merge close open drain reload verify sign'.split(' ')
const nouns =
  'queue token session header payload cache lock stream request worker schema index'.split(' ')
const folders = 'src lib internal packages/core app/models cmd server web/components'.split(' ')
const endings = 'ts go py rb rs java kt tsx sql yaml'.split(' ')

const drawFacts = (seed: string): Facts => {
  let count = 0
  const bytes = (length: number): Buffer => {
    const blocks: Buffer[] = []
    for (let size = 0; size < length; size += 64) {
      count += 1
      blocks.push(createHash('sha512').update(`${seed} ${count}`).digest())
    }
    return Buffer.concat(blocks).subarray(0, length)
  }
  const number = (below: number) => bytes(4).readUInt32BE() % below
  const one = (list: readonly string[]) => list[number(list.length)] ?? ''
  const hex = (length: number) => bytes(length).toString('hex').slice(0, length)
  const name = () => one(verbs) + one(nouns).replace(/^./, (first) => first.toUpperCase())
  return {
    bytes,
    hex,
    number,
    one,
    name,
    base64: (length) => bytes(length).toString('base64'),
    uuid: () => hex(32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    sha: () => hex(40),
    path: () => `${one(folders)}/${one(verbs)}_${one(nouns)}.${one(endings)}`,
    integrity: () => `sha512-${bytes(64).toString('base64')}`,
  }
}

type Maker = (facts: Facts) => string

const review: Maker = (f) =>
  `## Review of ${f.sha().slice(0, 7)}\n\nI read ${f.number(40)} files between ${f.sha()} and ${f.sha()}.\n\n- \`${f.path()}:${f.number(400)}\`: \`${f.name()}\` is called without \`await\`, so an error of it is lost.\n- \`${f.path()}:${f.number(90)}\` compares tokens with \`===\`; use \`timingSafeEqual\`.\n- The secret is read from \`process.env.${f.one(nouns).toUpperCase()}_SECRET\`, which is fine.\n\nNothing else looks risky.`

const jsonReview: Maker = (f) =>
  `The change is good.\n\n\`\`\`json\n${JSON.stringify(
    {
      conclusion: 'neutral',
      comments: [
        {
          path: f.path(),
          line: f.number(300),
          body: `\`${f.name()}(apiKey)\` logs the key: log its hash, e.g. ${f.hex(64)}.`,
        },
        { path: f.path(), line: 4, body: 'Name it `sk-learn` as elsewhere.' },
      ],
    },
    null,
    2,
  )}\n\`\`\``

const lockFile: Maker = (f) =>
  `Only \`package-lock.json\` changes:\n\n\`\`\`diff\n@@ -${f.number(900)},7 +${f.number(900)},7 @@\n     "node_modules/${f.one(nouns)}": {\n-      "version": "1.${f.number(9)}.0",\n-      "integrity": "${f.integrity()}",\n+      "version": "1.${f.number(9)}.1",\n+      "integrity": "${f.integrity()}",\n\`\`\`\n`

const yarnLock: Maker = (f) =>
  `\`\`\`\n"@babel/${f.one(nouns)}@^7.${f.number(30)}.0":\n  version "7.${f.number(30)}.${f.number(9)}"\n  resolved "https://registry.yarnpkg.com/@babel/core/-/core-7.1.0.tgz#${f.sha()}"\n  integrity ${f.integrity()}\n\`\`\`\nThe hash matches what npm serves.`

const goSum: Maker = (f) =>
  `go.sum gains two lines:\n\n    golang.org/x/${f.one(nouns)} v0.${f.number(40)}.0 h1:${f.base64(32)}\n    golang.org/x/${f.one(nouns)} v0.${f.number(40)}.0/go.mod h1:${f.base64(32)}\n\nThey are right.`

const cargo: Maker = (f) =>
  `[[package]]\nname = "${f.one(nouns)}"\nversion = "0.${f.number(9)}.${f.number(9)}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "${f.hex(64)}"\n\nNo advisory is known for it.`

const poetry: Maker = (f) =>
  `\`poetry.lock\` pins ${f.one(nouns)}:\n${[1, 2, 3].map((n) => `    {file = "${f.one(nouns)}-1.${n}-cp312-manylinux_2_17_x86_64.whl", hash = "sha256:${f.hex(64)}"},`).join('\n')}`

const image: Maker = (f) =>
  `The logo is inline now:\n\n![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA${f.base64(600 + f.number(3000))})\n\nI would keep it in a file.`

const font: Maker = (f) =>
  `@font-face { font-family: ${f.one(nouns)}; src: url(data:font/woff2;charset=utf-8;base64,d09GMgABAAAAA${f.base64(2000)}) format("woff2"); }\n\nThis adds 3 KB to each page.`

const sourceMap: Maker = (f) =>
  `The build left a source map:\n\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify({ version: 3, sources: [f.path(), f.path()], names: [f.name(), f.name()], mappings: 'AAAA,SAASA,GAAG,CAACC,GAAG' })).toString('base64')}`

const minified: Maker = (f) =>
  `\`dist/app.min.js\` was committed:\n\n\`\`\`js\n!function(e,t){"object"==typeof exports?module.exports=t():e.${f.name()}=t()}(this,function(){var n="${f.hex(20)}",r=[${Array.from({ length: 30 }, () => f.number(65536)).join()}];return{k:function(e){return e^0x${f.hex(8)}},AKIAS:!0,sk_:"sk-"+n,h:"${f.base64(24)}"}});\n\`\`\`\nLeave it out.`

const awsExample: Maker = (f) =>
  `The page shows the example keys of AWS, which is right:\n\n\`\`\`ini\n[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\nregion = eu-central-${f.number(3)}\n\`\`\`\n\`AKIAI44QH8DHBEXAMPLE\` in \`${f.path()}\` is one, too.`

const awsNames: Maker = (f) =>
  `Give the role \`arn:aws:iam::${100_000_000_000 + f.number(1_000_000)}:role/${f.name()}\` in place of a key. Its unique id AROA${'EXAMPLEID' + f.hex(8).toUpperCase()} stays. The bucket is s3://${f.one(nouns)}-${f.hex(12)}, KMS key ${f.uuid()}. Set \`AWS_SECRET_ACCESS_KEY\` in the runner, not in \`${f.path()}\`: \`secret_access_key: \${{ secrets.AWS_KEY }}\`.`

const jwtExample: Maker = (f) =>
  `A JWT has three parts, as in\n\n    ${makeJwt({ sub: '1234567890', name: 'John Doe', iat: 1_516_239_022 })}\n\n\`${f.name()}\` has to check \`alg\` before it uses \`kid\`. The one in \`${f.path()}\` has ended in 2021: ${makeJwt({ sub: f.uuid(), exp: 1_609_459_200 })}`

const jwtParts: Maker = (f) =>
  `The header \`eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9\` is always the same; decoded it is \`{"alg":"HS256","typ":"JWT"}\`. An unsigned token is \`eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify({ iss: 'joe', id: f.uuid() })).toString('base64url')}.\`, and must be refused by \`${f.name()}\`.`

const jwks: Maker = (f) =>
  `The key set is public:\n\n${JSON.stringify(
    {
      keys: [
        {
          kty: 'RSA',
          use: 'sig',
          kid: f.hex(40),
          e: 'AQAB',
          n: f.bytes(256).toString('base64url'),
        },
        {
          kty: 'EC',
          crv: 'P-256',
          x: f.bytes(32).toString('base64url'),
          y: f.bytes(32).toString('base64url'),
        },
      ],
    },
    null,
    2,
  )}`

const publicKey: Maker = (f) => {
  const { publicKey: key } = generateKeyPairSync('ed25519')
  return `I checked the signature with\n\n${key.export({ type: 'spki', format: 'pem' }).toString()}\nfingerprint SHA256:${f.base64(32).replace(/=$/, '')}.`
}

const sshKeys: Maker = (f) =>
  `authorized_keys has two keys:\n\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${f.base64(32).replace(/=$/, '')} ada@laptop\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ${f.base64(384)} bob@desk\n\nRemove the second: bob has left.`

const certificate: Maker = (f) =>
  `The certificate ends in ${f.number(90)} days:\n\n-----BEGIN CERTIFICATE-----\n${f.base64(700).replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n\nserial ${f.hex(32)}`

const pemWords: Maker = (f) =>
  `\`${f.path()}\` looks for \`-----BEGIN PRIVATE KEY-----\`, and the documents show\n\n-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n\nWrite it as \`-----BEGIN OPENSSH PRIVATE KEY-----\\nYOUR KEY HERE\\n-----END OPENSSH PRIVATE KEY-----\`; ${f.name()} takes both.`

const placeholders: Maker = (f) =>
  `Replace these before you start:\n\n    GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n    GITLAB_TOKEN=glpat-xxxxxxxxxxxxxxxxxxxx\n    OPENAI_API_KEY=sk-your-key-here\n    ANTHROPIC_API_KEY=sk-ant-api03-...\n    STRIPE_KEY=sk_live_${'X'.repeat(24)}\n    SLACK_BOT_TOKEN=xoxb-your-token\n    NPM_TOKEN=npm_${'x'.repeat(36)}\n    HF_TOKEN=hf_${'a'.repeat(34)}\n    SECRET=${'changeme'.repeat(2)}\n\nThe file is ${f.path()}.`

const documentedKeys: Maker = (f) =>
  `The pages of the senders have these, and they open nothing: ${no}xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy, whsec${no}_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLSw, AIza${no}SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe, https://hooks.slack.com/${no}services/T00000000/B00000000/${'X'.repeat(24)}, ghu${no}_16C7e42F292c6912E7710c838347Ae178B4a. \`${f.name()}\` may name them.`

const regexes: Maker = (f) =>
  `The scanner in \`${f.path()}\` misses tokens:\n\n\`\`\`js\nconst forms = [/ghp_[A-Za-z0-9]{36}/, /xox[baprs]-[0-9a-zA-Z-]{10,48}/, /sk_live_[0-9a-zA-Z]{24}/, /AKIA[0-9A-Z]{16}/, /eyJ[\\w-]+\\.eyJ[\\w-]+\\.[\\w-]+/, /-----BEGIN [A-Z ]*PRIVATE KEY-----/]\n\`\`\`\nAdd \`github_pat_\`, \`glpat-\` and \`AIza[\\w-]{35}\`; line ${f.number(300)}.`

const stripeIds: Maker = (f) =>
  `Invoice in_1N${f.base64(16).replaceAll(/\W/g, 'x')} of cus_${f.hex(14)} failed: pi_3${f.hex(23)}, request req_${f.hex(14)}. The test key sk_test_${f.hex(24)} and pk_live_${f.hex(24)} (public) are not the cause; the account is acct_1${f.hex(15)}.`

const traces: Maker = (f) =>
  `Error: ${f.one(nouns)} is closed\n    at ${f.name()} (/app/${f.path()}:${f.number(900)}:${f.number(80)})\n    at async ${f.name()} (node:internal/process/task_queues:95:5)\ntraceparent: 00-${f.hex(32)}-${f.hex(16)}-01\nrequest id ${f.uuid()}\n\nThe ${f.one(nouns)} was closed twice.`

const logs: Maker = (f) =>
  [1, 2, 3, 4, 5, 6]
    .map(
      (n) =>
        `2026-11-0${n}T0${f.number(9)}:1${n}:22.${100 + f.number(899)}Z INFO ${f.name()} id=${f.uuid()} etag="${f.hex(32)}" ip=10.0.${n}.${f.number(255)} token=[redacted] took=${f.number(900)}ms`,
    )
    .join('\n')

const docker: Maker = (f) =>
  `FROM node:20-slim@sha256:${f.hex(64)}\nENV NODE_VERSION=20.${f.number(20)}.1\nRUN --mount=type=secret,id=npm_token npm ci\n\nPin the digest, as ghcr.io/acme/${f.one(nouns)}@sha256:${f.hex(64)} does; containers ${f.hex(12)} and ${f.hex(12)} run the old one.`

const actions: Maker = (f) =>
  `\`\`\`yaml\n- uses: actions/checkout@${f.sha()} # v4.${f.number(9)}.1\n- uses: actions/setup-node@${f.sha()}\n  env:\n    NODE_AUTH_TOKEN: \${{ secrets.NPM_TOKEN }}\n    GITHUB_TOKEN: \${{ github.token }}\n    KEY: \${{ secrets.AWS_SECRET_ACCESS_KEY }}\n\`\`\`\nThe run ${f.number(1e9)} failed at step ${f.number(9)}.`

const kubernetes: Maker = (f) =>
  `apiVersion: v1\nkind: Secret\nmetadata: { name: ${f.one(nouns)}, uid: ${f.uuid()} }\ndata:\n  username: YWRtaW4=\n  greeting: ${Buffer.from(`hello from ${f.name()} and others`).toString('base64')}\n\nNo real value is in there; pod ${f.one(nouns)}-${f.hex(10)}-${f.hex(5)}.`

const terraform: Maker = (f) =>
  `provider "registry.terraform.io/hashicorp/aws" {\n  version = "5.${f.number(90)}.0"\n  hashes = [\n    "h1:${f.base64(32)}",\n${[1, 2, 3].map(() => `    "zh:${f.hex(64)}",`).join('\n')}\n  ]\n}`

const gitLog: Maker = (f) =>
  [1, 2, 3, 4]
    .map(
      () =>
        `commit ${f.sha()}\nAuthor: Ada <ada@acme.dev>\n\n    ${f.one(verbs)} the ${f.one(nouns)} (#${f.number(900)})\n\nindex ${f.hex(10)}..${f.hex(10)} 100644`,
    )
    .join('\n\n')

const binaryPatch: Maker = (f) =>
  `diff --git a/logo.png b/logo.png\nindex ${f.sha()}..${f.sha()} 100644\nGIT binary patch\nliteral ${f.number(900)}\n${[1, 2, 3, 4, 5].map(() => `zc${f.base64(38).replaceAll('/', '~').replaceAll('=', '')}`).join('\n')}\n\nA new picture, nothing else.`

const checksums: Maker = (f) =>
  ['tar.gz', 'zip', 'deb', 'rpm']
    .map((kind) => `${f.hex(64)}  ${f.one(nouns)}-1.${f.number(20)}.0.${kind}`)
    .join('\n')

const crypto: Maker = (f) =>
  `The vectors are those of the RFC:\n\n    key   = ${f.hex(64)}\n    nonce = ${f.hex(24)}\n    out   = ${f.hex(128)}\n\nBase64 of the last: ${Buffer.from(f.hex(64), 'hex').toString('base64')}. \`${f.name()}\` gives the same.`

const bcrypt: Maker = (f) =>
  `Passwords are kept as $2b$12$${f.base64(39).replaceAll(/[+=]/g, '.').slice(0, 53)} and $argon2id$v=19$m=65536,t=3,p=4$${f.base64(16).replace(/=+$/, '')}$${f.base64(32).replace(/=$/, '')}; the fixture in ${f.path()} is "correct horse".`

const ethereum: Maker = (f) =>
  `The contract 0x${f.hex(40)} was made in 0x${f.hex(64)}; \`${f.name()}\` reverts with 0x${f.hex(8)}. The salt is 0x${f.hex(64)}.`

const ids: Maker = (f) =>
  `Mongo ${f.hex(24)}, ULID 01J${f.hex(23).toUpperCase()}, KSUID ${f.base64(21).replaceAll(/\W/g, '0').slice(0, 27)}, nanoid ${f.bytes(16).toString('base64url').slice(0, 21)}, Snowflake ${f.number(1e9)}${f.number(1e9)}, UUID ${f.uuid()}: \`${f.one(nouns)}_id\` takes the last only.`

const dkim: Maker = (f) =>
  `DKIM-Signature: v=1; a=rsa-sha256; d=acme.dev; s=k1; bh=${f.base64(32)}; b=${f.base64(256)}\nMessage-ID: <${f.uuid()}@mail.acme.dev>\n\nThe record k1._domainkey has p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A${f.base64(200)}`

const saml: Maker = (f) =>
  `<ds:DigestValue>${f.base64(32)}</ds:DigestValue><ds:SignatureValue>${f.base64(256)}</ds:SignatureValue> of _${f.uuid()} is checked in ${f.path()}.`

const gzip: Maker = (f) =>
  `The fixture, packed: ${gzipSync(review(f)).toString('base64')}\n\nUnpack it with \`base64 -d | gunzip\`.`

const hexDump: Maker = (f) =>
  [0, 16, 32, 48]
    .map(
      (at) =>
        `${at.toString(16).padStart(8, '0')}  ${f
          .hex(32)
          .replaceAll(/..(?=.)/g, '$& ')}  |................|`,
    )
    .join('\n')

const urls: Maker = (f) =>
  `See https://github.com/acme/shop/blob/${f.sha()}/${f.path()}#L${f.number(99)}-L${100 + f.number(99)}, https://acme.dev/cb?code=REDACTED&state=${f.hex(32)}&code_challenge=${f.bytes(32).toString('base64url')}&redirect_uri=https%3A%2F%2Facme.dev%2Fcb, and https://hooks.slack.com/services/${no}…; /v1//0/x is odd.`

const config: Maker = (f) =>
  `\`\`\`yaml\nwebhooks:\n  - path: /${f.one(nouns)}\n    secret_env: ${f.one(nouns).toUpperCase()}_SECRET\n    deliver_to: 'slack:#${f.one(nouns)}'\nproviders: { acme: { client_id: ${f.uuid()}, client_secret_env: ACME_SECRET } }\n\`\`\`\nThe client id is public; the app is ${f.number(1e6)}-${f.hex(32)}.apps.googleusercontent.com.`

const tests: Maker = (f) =>
  `\`\`\`ts\nit('hides tokens', () => {\n  const token = 'gho_canary-of-${f.one(nouns)}'\n  expect(mask('Bearer ' + token)).toBe('Bearer ***')\n  expect(mask("sk_live_abc")).toBe('***')\n  const key = 'test-${f.hex(16)}'\n})\n\`\`\`\nThe test is right; \`glpat-\` is missing, and "npm_config_registry_of_the_project_root" is none.`

const translated: Maker = (f) =>
  `Die Änderung ist gut. \`${f.name()}\` prüft nun den Schlüssel „${f.one(nouns)}-Geheimnis“; 日本語のコメントは ${f.path()} にあります。Размер: ${f.number(900)} кБ. 🔑🔒 ${f.sha()}`

const table: Maker = (f) =>
  `| file | hash | size |\n| --- | --- | --- |\n${[1, 2, 3, 4, 5, 6, 7, 8].map(() => `| \`${f.path()}\` | \`${f.hex(64)}\` | ${f.number(9000)} |`).join('\n')}`

const issueOutputs: Maker = (f) =>
  JSON.stringify({
    labels: ['bug'],
    comment: `Seen in ${f.sha().slice(0, 12)}, build ${f.uuid()}.`,
    issue: {
      title: `Rotate the key of ${f.one(nouns)}`,
      body: `It is in \`${f.path()}\`, line ${f.number(99)}.`,
    },
  })

const makers: readonly Maker[] = [
  review,
  jsonReview,
  lockFile,
  yarnLock,
  goSum,
  cargo,
  poetry,
  image,
  font,
  sourceMap,
  minified,
  awsExample,
  awsNames,
  jwtExample,
  jwtParts,
  jwks,
  publicKey,
  sshKeys,
  certificate,
  pemWords,
  placeholders,
  documentedKeys,
  regexes,
  stripeIds,
  traces,
  logs,
  docker,
  actions,
  kubernetes,
  terraform,
  gitLog,
  binaryPatch,
  checksums,
  crypto,
  bcrypt,
  ethereum,
  ids,
  dkim,
  saml,
  gzip,
  hexDump,
  urls,
  config,
  tests,
  translated,
  table,
  issueOutputs,
]

/** Each kind alone, and then answers of three kinds that are next to each other in no other answer. */
export const makeHonestAnswers = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => {
    const facts = drawFacts(`answer ${index}`)
    const steps = index < makers.length ? [0] : [0, 1, 2]
    const round = 1 + Math.floor(index / makers.length)
    return steps
      .map((step) => makers[(index + step * (7 + round)) % makers.length]?.(facts))
      .join('\n\n')
  })
