import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import {
  readCallback,
  readPasted,
  readState,
} from '../../../daemon/oauth/login/authorization-code.ts'
import {
  type CodeAttempt,
  PendingLogins,
  randomText,
} from '../../../daemon/oauth/login/pending-logins.ts'
import { isProviderName } from '../../../daemon/oauth/providers/providers.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { bytesLike, holds, textOf } from '../../support/fuzz/fuzz.ts'

const issuer = 'https://id.example'
const authorizationEndpoint = `${issuer}/authorize`

const orRefused = <Result>(task: () => Result): Result | undefined => {
  try {
    return task()
  } catch (error) {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.ok(['callback-invalid', 'issuer-mismatch'].includes(error.code))
    return undefined
  }
}

describe('any request to the callback', () => {
  const pending = new PendingLogins({ onBegin: () => undefined, onEnd: () => undefined })
  const state = randomText()
  const attempt = {
    kind: 'code',
    loginId: 'login',
    state,
    provider: { name: 'mine', title: 'Mine' },
    clientFlags: '',
    redirectUri: 'http://127.0.0.1:1/callback',
    control: new AbortController(),
    expiresAt: Number.MAX_SAFE_INTEGER,
  } as unknown as CodeAttempt
  before(() => pending.add(attempt, Number.MAX_SAFE_INTEGER - 3_600_000))
  after(() => pending.close('the test is over'))

  holds(
    'finds a login by exactly its state, and no other',
    3000,
    fc.property(
      bytesLike('callbacks').map((bytes) => bytes.toString('latin1').replaceAll('STATE', state)),
      (query) => {
        const parameters = new URLSearchParams(query)
        const given = orRefused(() => readState(parameters))
        const found = given === undefined ? undefined : pending.findByState(given)
        const isExact = parameters.getAll('state').join('&') === state
        assert.equal(found, isExact ? attempt : undefined)
      },
    ),
  )

  holds(
    'is a code only when it is one, of the right issuer, and said once',
    3000,
    fc.property(
      bytesLike('callbacks').map((bytes) => bytes.toString('latin1')),
      fc.constantFrom(issuer, undefined),
      fc.boolean(),
      (query, known, issuerRequired) => {
        const parameters = new URLSearchParams(query)
        const expected = { issuer: known, issuerRequired, authorizationEndpoint }
        const answer = orRefused(() => readCallback(parameters, expected))
        if (answer === undefined) return
        const [iss, ...more] = parameters.getAll('iss')
        assert.deepEqual(more, [])
        if (known !== undefined) assert.ok(iss === issuer || (iss === undefined && !issuerRequired))
        else if (iss !== undefined) assert.equal(new URL(iss).origin, issuer)
        if (answer.kind === 'error') assert.match(answer.code, /^[a-z_ ]{1,48}$/)
        else {
          assert.equal(parameters.getAll('code').length, 1)
          assert.notEqual(parameters.get('code'), '')
          assert.ok(!parameters.get('error'))
        }
      },
    ),
  )

  const redirectUri = 'http://127.0.0.1:53174/callback'
  holds(
    'is taken from a pasted address only at the redirect URI itself',
    2000,
    fc.property(
      textOf([
        redirectUri,
        'http://',
        'https://',
        '127.0.0.1',
        '127.1',
        'localhost',
        ':53174',
        '@',
        'evil.example',
        '/callback',
        '/../',
        '%2f',
        '?',
        '#',
        '\\',
        ' ',
        'code=c',
      ]),
      (text) => {
        const found = orRefused(() => readPasted(text, redirectUri))
        if (found === undefined) return
        const url = new URL(text.trim())
        assert.deepEqual(
          [url.protocol, url.host, url.pathname, url.username],
          ['http:', '127.0.0.1:53174', '/callback', ''],
        )
      },
    ),
  )
})

describe('any name of a provider', () => {
  holds(
    'is refused unless it is a plain name of a file',
    3000,
    fc.property(
      textOf(['..', '.', '/', '\\', '\0', '\n', 'a', 'mine', '-', '_', 'A', '%2f', ':', '~', ' ']),
      (name) => {
        if (isProviderName(name)) assert.match(name, /^[a-z0-9][a-z0-9_-]*$/)
        assert.equal(isProviderName(`${name}\n`), false)
      },
    ),
  )
})
