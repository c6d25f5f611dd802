import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { describe, it } from 'mocha'
import { findProxy } from '../../../shared/network/proxy.ts'
import {
  curlVariables,
  describeNetwork,
  networkVariables,
  networkWarnings,
} from '../../../shared/network/variables.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const proxy = 'http://proxy.corp.example:3128'

const getPlace = (url: string, env: NodeJS.ProcessEnv): string | undefined => {
  const found = findProxy(new URL(url), env)
  return found && ('isUnusable' in found ? `unusable ${found.variable}` : found.place)
}

describe('the proxy for a URL', () => {
  it('is named by a variable for its scheme, in either case, the lower one first', () => {
    const place = 'proxy.corp.example:3128'
    assert.equal(getPlace('https://a.example', { HTTPS_PROXY: proxy }), place)
    assert.equal(getPlace('https://a.example', { https_proxy: proxy, HTTPS_PROXY: 'x' }), place)
    assert.equal(getPlace('http://a.example', { HTTP_PROXY: proxy }), place)
    assert.equal(getPlace('https://a.example', { HTTP_PROXY: proxy }), undefined)
    assert.equal(getPlace('https://a.example', { https_proxy: ' ', HTTPS_PROXY: '' }), undefined)
  })

  it('may leave out scheme and port', () => {
    for (const [text, place] of [
      ['proxy:3128', 'proxy:3128'],
      ['http://proxy', 'proxy:80'],
      ['https://proxy/', 'proxy:443'],
      ['http://[fd00::1]:8080', '[fd00::1]:8080'],
    ] as const)
      assert.equal(getPlace('https://a.example', { HTTPS_PROXY: text }), place)
  })

  for (const text of ['socks5://proxy:1080', 'http://', 'http://me:p#ss@proxy:1', 'http://a:%zz@b'])
    it(`is refused as ${text}, and not left out`, () => {
      const env = { HTTPS_PROXY: text }
      assert.equal(getPlace('https://a.example', env), 'unusable HTTPS_PROXY')
      const [warning, ...more] = networkWarnings(env)
      assert.deepEqual([warning?.code, more], ['proxy-unusable', []])
      assert.equal(warning?.detail.includes(text), false)
    })

  it('is none for this machine', () => {
    const env = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy }
    for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', 'a.localhost', '[::1]', '0.0.0.0'])
      for (const scheme of ['http', 'https'])
        assert.equal(getPlace(`${scheme}://${host}:8443/`, env), undefined, host)
  })

  const exceptions: readonly (readonly [list: string, yes: string[], no: string[]])[] = [
    ['*', ['a.example', '[fd00::1]', '10.0.0.1'], []],
    ['corp.example', ['corp.example', 'a.b.corp.example'], ['xcorp.example', 'corp.example.org']],
    ['.corp.example', ['corp.example', 'a.corp.example'], ['xcorp.example']],
    ['*.corp.example', ['corp.example', 'a.corp.example'], ['xcorp.example']],
    ['x, Corp.Example  y', ['a.corp.example', 'x', 'y'], ['z']],
    ['corp.example:8443', ['corp.example:8443'], ['corp.example', 'corp.example:84']],
    ['corp.example:443', ['corp.example'], ['corp.example:8443']],
    ['corp.example.', ['corp.example', 'corp.example.'], ['example']],
    ['10.0.0.1', ['10.0.0.1'], ['10.0.0.10', '110.0.0.1']],
    ['0.0.1', [], ['10.0.0.1']],
    ['10.0.0.0/8', ['10.1.2.3'], ['11.0.0.1', 'a.example']],
    ['10.1.*', ['10.1.2.3'], ['10.10.2.3']],
    ['fd00::1', ['[fd00::1]', '[fd00:0:0::1]'], ['[fd00::2]']],
    ['[fd00::1]', ['[fd00::1]', '[fd00::1]:8443'], ['[fd00::2]']],
    ['[fd00::1]:8443', ['[fd00::1]:8443'], ['[fd00::1]']],
    ['fd00::/16', ['[fd00::abcd]'], ['[fe00::1]']],
    ['10.0.0.0/99, (, [, ::/x', [], ['10.0.0.1', '[::2]', 'a.example']],
  ]
  for (const [list, yes, no] of exceptions)
    it(`is none for what NO_PROXY="${list}" names`, () => {
      for (const name of ['NO_PROXY', 'no_proxy']) {
        const env = { HTTPS_PROXY: proxy, [name]: list }
        for (const host of yes) assert.equal(getPlace(`https://${host}/`, env), undefined, host)
        for (const host of no) assert.ok(getPlace(`https://${host}/`, env), host)
      }
    })
})

describe('the variables of the network', () => {
  it('are shown in one line without a password', () => {
    assert.equal(describeNetwork({ PATH: '/bin' }), undefined)
    const env = {
      HTTPS_PROXY: 'http://ada:canary@proxy:3128',
      NO_PROXY: '.corp.example',
      NODE_EXTRA_CA_CERTS: '/etc/corp.pem',
    }
    assert.equal(
      describeNetwork(env),
      'through the proxy proxy:3128 (HTTPS_PROXY), but not to .corp.example, with the certificates in /etc/corp.pem',
    )
  })

  it('are passed on with the whole path of the certificates', () => {
    const files = { NODE_EXTRA_CA_CERTS: '~/ca.pem', SSL_CERT_FILE: '~/all.pem' }
    const passed = networkVariables({ https_proxy: 'x', NO_PROXY: '', ...files, PATH: '/bin' })
    assert.deepEqual(Object.keys(passed), ['https_proxy', ...Object.keys(files)])
    assert.equal(passed['NODE_EXTRA_CA_CERTS'], join(homedir(), 'ca.pem'))
    assert.equal(passed['SSL_CERT_FILE'], join(homedir(), 'all.pem'))
  })

  it('are passed on to git with the proxy that doorward uses for a URL, or with none', () => {
    const env = { HTTPS_PROXY: proxy, http_proxy: 'http://other:1', NO_PROXY: '10.1.*', PATH: 'x' }
    const at = (url: string) => curlVariables(new URL(url), env)
    assert.deepEqual(at('https://git.example/a'), { https_proxy: `${proxy}/` })
    assert.deepEqual(at('http://git.example/a'), { http_proxy: 'http://other:1/' })
    for (const host of ['10.1.2.3', '127.0.0.1', 'localhost'])
      assert.deepEqual(at(`https://${host}/a`), {})
    const socks = { HTTPS_PROXY: 'socks5://proxy:1080' }
    assert.deepEqual(curlVariables(new URL('https://git.example'), socks), socks)
  })

  it('are warned about where the file has no certificates', async () => {
    const folder = await temporaryFolder()
    const getWarning = (path: string) => networkWarnings({ NODE_EXTRA_CA_CERTS: path })[0]?.detail
    const file = join(folder, 'ca.pem')
    assert.match(getWarning(file) ?? '', /ca\.pem cannot be read: /)
    assert.match(getWarning(folder) ?? '', /cannot be read: /)
    for (const [text, why] of [
      ['\u0030\u0082', 'has no certificate in PEM format'],
      ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'is damaged'],
    ] as const) {
      await writeFile(file, text)
      assert.ok(getWarning(file)?.endsWith(why), text)
    }
  })

  it('are warned about where the file in SSL_CERT_FILE is missing or has no certificate', async () => {
    const warnings = (path: string) => networkWarnings({ SSL_CERT_FILE: path })
    const [missing] = warnings('~/nowhere/ca.pem')
    assert.equal(missing?.code, 'ca-file-unusable')
    const path = join(homedir(), 'nowhere', 'ca.pem')
    assert.ok(missing.detail.startsWith(`SSL_CERT_FILE: ${path} cannot be read: `), missing.detail)
    const file = join(await temporaryFolder(), 'ca.pem')
    await writeFile(file, 'hello')
    assert.equal(
      warnings(file)[0]?.detail,
      `SSL_CERT_FILE: ${file} has no certificate in PEM format`,
    )
    await writeFile(file, tls.rootCertificates.slice(0, 2).join('\n'))
    assert.deepEqual(warnings(file), [])
  })
})
