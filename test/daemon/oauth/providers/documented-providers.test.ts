import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'mocha'
import { clientUnknown } from '../../../../daemon/oauth/providers/client-store.ts'
import { findProvider, providerNames } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayFileSchema } from '../../../../shared/config/schema.ts'
import { packageFolder } from '../../../../shared/version.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

const page = readFileSync(new URL('docs/providers.md', packageFolder), 'utf8')

describe('docs/providers.md', () => {
  it('has entries that are valid and say where to log in', () => {
    const blocks = [...page.matchAll(/^( *)```yaml\n(.*?)^ *```$/gms)].map(
      ([, indent = '', text = '']) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    )
    assert.ok(blocks.length >= 5)
    for (const text of blocks) {
      const { value, problems } = readYaml('gateway.yaml', text)
      assert.deepEqual(problems, [], text)
      const gateway = gatewayFileSchema.parse(value)
      for (const name of Object.keys(gateway.providers)) findProvider(name, gateway)
    }
  })

  it('names the page and the redirect URI that a login without a client names', () => {
    const gateway = gatewayOf({})
    for (const name of providerNames(gateway)) {
      const { hint = '' } = clientUnknown(findProvider(name, gateway), 53_174)
      const addresses = hint.match(/https?:\/\/[^\s,]+/g) ?? []
      assert.ok(addresses.length > 0)
      for (const address of addresses) assert.ok(page.includes(address), address)
    }
  })
})
