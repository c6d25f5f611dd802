import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { clientAuthentication } from '../../../../daemon/oauth/providers/client-proof.ts'

const server = {
  issuer: 'https://issuer.example',
  authorization_endpoint: 'https://issuer.example/authorize',
  token_endpoint: 'https://issuer.example/token',
}

/** What is sent for this client: `user:password` of Basic before its base64, and the form. */
const proofOf = async (
  clientId: string,
  clientSecret: string | undefined,
  methods?: string[],
  revocationMethods?: string[],
) => {
  const [body, headers] = [new URLSearchParams(), new Headers()]
  const withMethods = {
    ...server,
    ...(methods && { token_endpoint_auth_methods_supported: methods }),
    ...(revocationMethods && { revocation_endpoint_auth_methods_supported: revocationMethods }),
  }
  const authenticate = clientAuthentication(
    { clientId, clientSecret },
    { isIssuerKnown: true, server: withMethods },
    revocationMethods ? 'revocation' : 'token',
  )
  await authenticate(withMethods, { client_id: clientId }, body, headers)
  const [, encoded = ''] = /^Basic (\S+)$/.exec(headers.get('authorization') ?? '') ?? []
  return { basic: Buffer.from(encoded, 'base64').toString(), form: body.toString() }
}

describe('the proof of a client', () => {
  const basic = ['client_secret_basic']
  for (const [what, id, secret, sent] of [
    ['as they are', 'app-1.example_2*', 'GOCSPX-a_b.C*9', 'app-1.example_2*:GOCSPX-a_b.C*9'],
    ['a colon and a space encoded', 'a:b', 'c d', 'a%3Ab:c+d'],
    ['signs encoded', 'a', '~!+%/=&', 'a:%7E%21%2B%25%2F%3D%26'],
    // RFC 6749 appendix B.
    ['other letters encoded', 'a', ' %&+£€', 'a:+%25%26%2B%C2%A3%E2%82%AC'],
  ] as const)
    it(`by Basic has ${what}`, async () =>
      assert.deepEqual(await proofOf(id, secret, basic), { basic: sent, form: '' }))

  it('by Basic is read by a server that decodes it', async () => {
    const secret = "a-._~ :+%é*'()!"
    const [, password = ''] = (await proofOf('id', secret, basic)).basic.split(':')
    assert.equal(new URLSearchParams(`x=${password}`).get('x'), secret)
  })

  it('goes in the body where the server takes that too, or does not say', async () => {
    const form = 'client_id=a&client_secret=b-c'
    for (const methods of [undefined, [...basic, 'client_secret_post']])
      assert.deepEqual(await proofOf('a', 'b-c', methods), { basic: '', form })
  })

  it('is the id alone for a client without a secret', async () =>
    assert.deepEqual(await proofOf('a', undefined, basic), { basic: '', form: 'client_id=a' }))

  it('at a revocation endpoint is what that endpoint lists', async () => {
    const post = ['client_secret_post']
    const form = 'client_id=a&client_secret=b'
    assert.deepEqual(await proofOf('a', 'b', basic, post), { basic: '', form })
    assert.deepEqual(await proofOf('a', 'b', post, basic), { basic: 'a:b', form: '' })
  })

  it('at a revocation endpoint is the id in the body for a public client, whatever is listed', async () => {
    for (const listed of [basic, [...basic, 'none']])
      assert.deepEqual(await proofOf('a', undefined, basic, listed), {
        basic: '',
        form: 'client_id=a',
      })
  })
})
