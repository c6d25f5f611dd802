import assert from 'node:assert/strict'
import { loadMultipart } from '../../../daemon/webhook/forms.ts'
import { parse } from '../../../daemon/webhook/read-delivery.ts'
import { verify } from '../../../daemon/webhook/signatures/verify.ts'

/** The body and content type that Node's own `fetch` sends for a form. */
const encode = async (form: FormData): Promise<{ body: Buffer; type: string }> => {
  const request = new Request('http://localhost', { method: 'POST', body: form })
  return {
    body: Buffer.from(await request.arrayBuffer()),
    type: request.headers.get('content-type') ?? '',
  }
}

const parsed = (body: Buffer, type: string) =>
  parse(verify(body, {}, 'none', 0), { 'content-type': type })

const malformed = { code: 'payload-not-json' }

describe('a multipart form', () => {
  before(loadMultipart)

  it('becomes its fields, and the names and sizes of its files', async () => {
    const form = new FormData()
    form.append('subject', 'Grüße\r\n--x')
    form.append('__proto__', 'own')
    form.append('empty', '')
    form.append('attachment-1', new File([new Uint8Array(300_000)], 'größe.bin'))
    form.append('attachment-2', new File(['{}'], '../a.json', { type: 'application/json' }))
    const { body, type } = await encode(form)
    assert.deepEqual(Object.entries(parsed(body, type) as object), [
      ['subject', 'Grüße\r\n--x'],
      ['__proto__', 'own'],
      ['empty', ''],
      ['attachment-1', { filename: 'größe.bin', type: 'application/octet-stream', size: 300_000 }],
      ['attachment-2', { filename: 'a.json', type: 'application/json', size: 2 }],
    ])
  })

  it('becomes the JSON of its field payload, as other forms do', async () => {
    const form = new FormData()
    form.append('payload', '{"event":"media.play"}')
    form.append('thumb', new File(['jpeg'], 'thumb.jpg'))
    const { body, type } = await encode(form)
    assert.deepEqual(parsed(body, type), { event: 'media.play' })
  })

  it('is refused when it is cut off anywhere', async () => {
    const form = new FormData()
    form.append('a', '1')
    form.append('f', new File(['text'], 'f.txt'))
    const { body, type } = await encode(form)
    const end = body.lastIndexOf('--')
    for (let length = 0; length <= end; length += 1)
      assert.throws(() => parsed(body.subarray(0, length), type), malformed, String(length))
  })

  it('is refused with more than a hundred parts', async () => {
    const form = new FormData()
    for (let at = 0; at < 100; at += 1) form.append(`f${at}`, 'x')
    const { body, type } = await encode(form)
    assert.throws(() => parsed(body, type), malformed)
  })

  it('is refused without its boundary, or with a broken part', () => {
    const type = 'multipart/form-data; boundary=x'
    const part = 'Content-Disposition: form-data; name="a"\r\n\r\n1'
    for (const [body, contentType] of [
      ['', type],
      ['{}', type],
      [`{"title":"\r\n--x\r\n${part}\r\n--x--\r\n"}`, type],
      [`--x\r\n${part}\r\n--x--\r\n`, 'multipart/form-data'],
      [`--x\r\n${part}\r\n--x--\r\n`, 'multipart/form-data; boundary=y'],
      ['--x\r\nno colon\r\n\r\n1\r\n--x--\r\n', type],
      [`--${'x'.repeat(71)}\r\n${part}\r\n--${'x'.repeat(71)}--\r\n`, `${type}${'x'.repeat(70)}`],
    ] as const)
      assert.throws(() => parsed(Buffer.from(body), contentType), malformed, body)
    assert.throws(() => parsed(Buffer.from('--x--\r\n'), type), malformed)
    assert.deepEqual(parsed(Buffer.from(`--x\r\n${part}\r\n--x--`), type), { a: '1' })
  })
})
