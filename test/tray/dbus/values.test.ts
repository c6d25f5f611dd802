import assert from 'node:assert/strict'
import { busSockets } from '../../../tray/dbus/connect.ts'
import { decodeMessage, encodeMessage, lengthOfMessage } from '../../../tray/dbus/message.ts'
import { readValues, variant, writeValues } from '../../../tray/dbus/marshal.ts'

const rows: readonly [signature: string, values: unknown[], hex: string][] = [
  // The example of the specification, in little-endian.
  ['s', ['foo'], '03000000 666f6f00'],
  ['s', ['+'], '01000000 2b00'],
  ['sss', ['foo', '+', 'bar'], '03000000 666f6f00 01000000 2b000000 03000000 62617200'],
  ['ybi', [255, true, -2], 'ff000000 01000000 feffffff'],
  ['v', [variant('u', 7)], '017500 00 07000000'],
  ['ay', [Buffer.from([1, 2])], '02000000 0102'],
  ['(iy)', [[1, 2]], '01000000 02'],
  ['a(iiay)', [[]], '00000000 00000000'],
  [
    'a{sv}',
    [new Map([['a', variant('b', false)]])],
    '10000000 00000000 01000000 6100 016200 000000 00000000',
  ],
]

describe('values on the bus', () => {
  for (const [signature, values, hex] of rows) {
    it(`writes and reads ${signature} ${hex}`, () => {
      const bytes = writeValues(signature, values)
      assert.equal(bytes.toString('hex'), hex.replaceAll(' ', ''))
      assert.deepEqual(readValues(signature, bytes).values, values)
    })
  }

  it('writes more than one page, whatever comes at its end', () => {
    const signature = 'sayug'
    for (const length of [250, 255, 256, 511, 5000]) {
      const values = ['x'.repeat(length), Buffer.alloc(length, 7), 0xffff_ffff, 'ai']
      const bytes = writeValues(signature, values)
      assert.deepEqual(readValues(signature, bytes).values, values)
    }
  })

  it('reads numbers that it never writes', () => {
    const read = (signature: string, hex: string) =>
      readValues(signature, Buffer.from(hex.replaceAll(' ', ''), 'hex')).values
    assert.deepEqual(read('nq', 'ffff ffff'), [-1, 65535])
    assert.deepEqual(read('xd', 'ffffffffffffffff 000000000000f83f'), [-1n, 1.5])
    assert.deepEqual(read('at', '08000000 00000000 0500000000000000'), [[5n]])
  })

  it('reads the other byte order', () => {
    const bytes = Buffer.from('00000003666f6f0000000007', 'hex')
    assert.deepEqual(readValues('su', bytes, false).values, ['foo', 7])
  })

  const misfits: readonly [string, unknown[]][] = [
    ['u', [-1]],
    ['y', [256]],
    ['i', [1.5]],
    ['i', ['1']],
    ['b', [1]],
    ['x', [5n]],
    ['s', ['a\0b']],
    ['s', ['\ud800']],
    ['o', ['relative']],
    ['o', ['/ends/']],
    ['g', ['{sv}']],
    ['v', ['no variant']],
    ['v', [variant('ii', 1)]],
    ['as', ['text']],
    ['a{sv}', [{}]],
    ['(ii)', [[1]]],
    ['s', []],
    ['a', [[]]],
    ['()', [[]]],
    ['z', [1]],
    ['h', [1]],
    ['(', [[]]],
    [`${'a'.repeat(40)}s`, [[]]],
  ]
  for (const [signature, values] of misfits) {
    it(`refuses to write ${String(values)} as ${signature}`, () => {
      assert.throws(() => writeValues(signature, values), { code: 'bus-protocol' })
    })
  }

  it('refuses bytes that end early, have a wrong length or nest without end', () => {
    const broken: readonly [string, string][] = [
      ['u', '0100'],
      ['s', 'ff000000 61'],
      ['as', 'ffffffff'],
      ['au', '03000000 01000000'],
      ['v', '03616161'],
      ['v', '017600'.repeat(100)],
    ]
    for (const [signature, hex] of broken) {
      const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
      assert.throws(() => readValues(signature, bytes), { code: 'bus-protocol' }, hex)
    }
  })
})

describe('a message on the bus', () => {
  it('is decoded unchanged, and shows its length before it is complete', () => {
    const message = {
      type: 'call',
      serial: 9,
      path: '/a/b',
      interface: 'a.b',
      member: 'C',
      destination: ':1.2',
      signature: 'su',
      body: ['text', 3],
      noReply: false,
    } as const
    const bytes = encodeMessage(message)
    assert.deepEqual({ ...decodeMessage(bytes) }, message)
    assert.equal(lengthOfMessage(bytes.subarray(0, 15)), undefined)
    assert.equal(lengthOfMessage(bytes.subarray(0, 16)), bytes.length)
  })

  it('is refused when it is invalid or too long', () => {
    assert.throws(() => lengthOfMessage(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')), {
      code: 'bus-protocol',
    })
    const bytes = encodeMessage({
      type: 'signal',
      serial: 1,
      path: '/',
      interface: 'a.b',
      member: 'C',
    })
    bytes.writeUInt32LE(0x7fff_ffff, 4)
    assert.throws(() => lengthOfMessage(bytes), { code: 'bus-protocol' })
  })
})

describe('the address of the session bus', () => {
  const cases: readonly [string, NodeJS.ProcessEnv, string[]][] = [
    [
      'a path',
      { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/run/user/1/bus,guid=1f' },
      ['/run/user/1/bus'],
    ],
    [
      'an abstract name',
      { DBUS_SESSION_BUS_ADDRESS: 'unix:abstract=/tmp/dbus-x' },
      ['\0/tmp/dbus-x'],
    ],
    ['escapes', { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/a%20b' }, ['/a b']],
    [
      'several',
      { DBUS_SESSION_BUS_ADDRESS: 'tcp:host=x,port=1;unix:path=/a;unix:path=/b' },
      ['/a', '/b'],
    ],
    ['the runtime folder', { XDG_RUNTIME_DIR: '/run/user/1' }, ['/run/user/1/bus']],
    [
      'the runtime folder by name',
      { XDG_RUNTIME_DIR: '/run/user/1', DBUS_SESSION_BUS_ADDRESS: 'unix:runtime=yes' },
      ['/run/user/1/bus'],
    ],
    ['garbage', { DBUS_SESSION_BUS_ADDRESS: 'disabled:' }, []],
    ['nothing', {}, []],
  ]
  for (const [name, env, expected] of cases) {
    it(`is read from ${name}`, () => assert.deepEqual(busSockets(env), expected))
  }
})
