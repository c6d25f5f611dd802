import assert from 'node:assert/strict'
import {
  NoAnswer,
  type Printed,
  claudeAnswer,
  codexAnswer,
  geminiAnswer,
  llmAnswer,
  opencodeAnswer,
} from '../../../daemon/agents/cli-presets.ts'

const printed = (lines: readonly unknown[] | string, exitCode = 0, stderr = ''): Printed => ({
  stdout: typeof lines === 'string' ? lines : lines.map((line) => JSON.stringify(line)).join('\n'),
  stderr,
  exitCode,
})

const refuses = (read: (printed: Printed) => string, what: Printed, words: string) =>
  assert.throws(
    () => read(what),
    (error) => error instanceof NoAnswer && error.message === words,
  )

describe('the answer of claude', () => {
  const result = (more: object) => ({
    type: 'result',
    subtype: 'success',
    is_error: false,
    ...more,
  })

  it('is the result of its document, or of the last one of a list', () => {
    assert.equal(claudeAnswer(printed([result({ result: 'yes' })])), 'yes')
    const list = JSON.stringify([{ type: 'system' }, result({ result: 'yes' })])
    assert.equal(claudeAnswer(printed(list)), 'yes')
    assert.equal(claudeAnswer(printed([result({ result: '' })])), '')
    const noticed = `an update is available\n${JSON.stringify(result({ result: 'yes' }))}\n`
    assert.equal(claudeAnswer(printed(noticed)), 'yes')
  })

  it('is the structured output where the result is empty, as with --json-schema', () => {
    const structured_output = { risk: 'low', files: ['a.ts'] }
    assert.equal(
      claudeAnswer(printed([result({ result: '', structured_output })])),
      '{"risk":"low","files":["a.ts"]}',
    )
    assert.equal(claudeAnswer(printed([result({ result: 'yes', structured_output })])), 'yes')
    assert.equal(claudeAnswer(printed([result({ result: '', structured_output: null })])), '')
    refuses(claudeAnswer, printed([result({ result: '', structured_output, is_error: true })]), '')
  })

  it('is none where is_error says so, whatever the subtype', () => {
    refuses(
      claudeAnswer,
      printed([result({ is_error: true, result: 'API Error: 401' })]),
      'API Error: 401',
    )
    refuses(claudeAnswer, printed([result({ result: 'x' })], 1), 'x')
    refuses(
      claudeAnswer,
      printed([{ type: 'result', subtype: 'error_max_turns' }]),
      'error_max_turns',
    )
    const failed = { subtype: 'error_during_execution', is_error: true }
    const errors = ['No conversation found', 7, 'second']
    refuses(
      claudeAnswer,
      printed([result({ ...failed, errors })], 1),
      'error_during_execution: No conversation found; second',
    )
    refuses(claudeAnswer, printed([result({ ...failed, errors: [] })]), 'error_during_execution')
  })

  it('is none in what is cut off, or no result', () => {
    for (const text of ['', '{"type":"result","res', 'null', '[]', '{"result":"x"}', 'hello'])
      refuses(claudeAnswer, printed(text), '')
  })
})

describe('the answer of codex', () => {
  const message = (text: string) => ({
    type: 'item.completed',
    item: { type: 'agent_message', text },
  })
  const warning = { type: 'item.completed', item: { type: 'error', message: 'a warning' } }

  it('is the last message of the agent', () => {
    const lines = [
      warning,
      message('first'),
      { type: 'item.completed' },
      message('last'),
      { type: 'turn.completed' },
    ]
    assert.equal(codexAnswer(printed(lines)), 'last')
  })

  it('is none when the turn failed or the program did', () => {
    const failed = { type: 'turn.failed', error: { message: 'no' } }
    refuses(
      codexAnswer,
      printed([message('x'), { type: 'error', message: 'again 1/5' }, failed], 1),
      'no',
    )
    refuses(codexAnswer, printed([{ type: 'error', message: 'no' }], 1), 'no')
    refuses(codexAnswer, printed('Not inside a trusted directory', 1), '')
    refuses(codexAnswer, printed([warning]), '')
  })

  it('is found though the last line is cut off', () => {
    assert.equal(codexAnswer(printed(`${JSON.stringify(message('x'))}\n{"type":"turn.comp`)), 'x')
  })
})

describe('the answer of opencode', () => {
  const text = (messageID: string, words: string) => ({
    type: 'text',
    part: { messageID, text: words },
  })

  it('is all the text of the last message', () => {
    const lines = [
      { type: 'step_start' },
      text('1', 'I look'),
      text('2', 'It is '),
      text('2', 'so'),
    ]
    assert.equal(opencodeAnswer(printed(lines)), 'It is so')
  })

  it('is none after an error', () => {
    const error = { type: 'error', error: { name: 'APIError', data: { message: 'no' } } }
    refuses(opencodeAnswer, printed([error], 1), 'no')
    refuses(opencodeAnswer, printed([{ type: 'error', error: { name: 'Unknown' } }]), 'Unknown')
    refuses(opencodeAnswer, printed([]), '')
  })
})

describe('the answer of gemini', () => {
  it('is the response of its document', () => {
    assert.equal(
      geminiAnswer(printed(JSON.stringify({ response: 'yes', stats: {} }, null, 2))),
      'yes',
    )
    const document = JSON.stringify({ response: 'yes', stats: { models: {} } }, null, 2)
    assert.equal(geminiAnswer(printed(`Loaded cached credentials.\n${document}\n`)), 'yes')
  })

  it('is none with an exit code, which is put into words, with the document on standard error', () => {
    const document = JSON.stringify(
      { error: { type: 'Error', message: 'says no', code: 401 } },
      null,
      2,
    )
    const stderr = `Warning: colours\nError { \n  at x\n}\n${document}\n`
    refuses(geminiAnswer, printed('', 145, stderr), 'the model refused its login (401): says no')
    refuses(geminiAnswer, printed('', 41), 'it is not logged in')
    refuses(geminiAnswer, printed('', 7), '')
    refuses(geminiAnswer, printed('{"response":null}'), '')
    refuses(geminiAnswer, printed([{ response: 'x', error: { message: 'no' } }]), 'no')
  })
})

describe('the answer of llm', () => {
  it('is what it prints', () => {
    assert.equal(llmAnswer(printed('two\nlines\n')), 'two\nlines')
    refuses(llmAnswer, printed('Error', 1), '')
  })
})
