import assert from 'node:assert/strict'
import {
  NoAnswer,
  type CliOutput,
  readClaudeAnswer,
  readCodexAnswer,
  readGeminiAnswer,
  readLlmAnswer,
  readOpencodeAnswer,
} from '../../../daemon/agents/cli-output.ts'

const printed = (lines: readonly unknown[] | string, exitCode = 0, stderr = ''): CliOutput => ({
  stdout: typeof lines === 'string' ? lines : lines.map((line) => JSON.stringify(line)).join('\n'),
  stderr,
  exitCode,
})

const refuses = (read: (printed: CliOutput) => string, what: CliOutput, words: string) =>
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
    assert.equal(readClaudeAnswer(printed([result({ result: 'yes' })])), 'yes')
    const list = JSON.stringify([{ type: 'system' }, result({ result: 'yes' })])
    assert.equal(readClaudeAnswer(printed(list)), 'yes')
    assert.equal(readClaudeAnswer(printed([result({ result: '' })])), '')
    const noticed = `an update is available\n${JSON.stringify(result({ result: 'yes' }))}\n`
    assert.equal(readClaudeAnswer(printed(noticed)), 'yes')
  })

  it('is the structured output where the result is empty, as with --json-schema', () => {
    const structured_output = { risk: 'low', files: ['a.ts'] }
    assert.equal(
      readClaudeAnswer(printed([result({ result: '', structured_output })])),
      '{"risk":"low","files":["a.ts"]}',
    )
    assert.equal(readClaudeAnswer(printed([result({ result: 'yes', structured_output })])), 'yes')
    assert.equal(readClaudeAnswer(printed([result({ result: '', structured_output: null })])), '')
    refuses(
      readClaudeAnswer,
      printed([result({ result: '', structured_output, is_error: true })]),
      '',
    )
  })

  it('is missing where is_error says so, whatever the subtype', () => {
    refuses(
      readClaudeAnswer,
      printed([result({ is_error: true, result: 'API Error: 401' })]),
      'API Error: 401',
    )
    refuses(readClaudeAnswer, printed([result({ result: 'x' })], 1), 'x')
    refuses(
      readClaudeAnswer,
      printed([{ type: 'result', subtype: 'error_max_turns' }]),
      'error_max_turns',
    )
    const failed = { subtype: 'error_during_execution', is_error: true }
    const errors = ['No conversation found', 7, 'second']
    refuses(
      readClaudeAnswer,
      printed([result({ ...failed, errors })], 1),
      'error_during_execution: No conversation found; second',
    )
    refuses(
      readClaudeAnswer,
      printed([result({ ...failed, errors: [] })]),
      'error_during_execution',
    )
  })

  it('is missing where the run has cost what it may, which has a code of its own', () => {
    const ended = { subtype: 'error_max_budget_usd', is_error: true, result: undefined }
    const errors = ['Reached maximum budget ($0.5)']
    assert.throws(
      () => readClaudeAnswer(printed([result({ ...ended, errors })], 1)),
      (error) => error instanceof NoAnswer && error.code === 'budget-reached',
    )
  })

  it('is missing in cut output, and without a result', () => {
    for (const text of ['', '{"type":"result","res', 'null', '[]', '{"result":"x"}', 'hello'])
      refuses(readClaudeAnswer, printed(text), '')
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
    assert.equal(readCodexAnswer(printed(lines)), 'last')
  })

  it('is missing when the turn failed or the program did', () => {
    const failed = { type: 'turn.failed', error: { message: 'no' } }
    refuses(
      readCodexAnswer,
      printed([message('x'), { type: 'error', message: 'again 1/5' }, failed], 1),
      'no',
    )
    refuses(readCodexAnswer, printed([{ type: 'error', message: 'no' }], 1), 'no')
    refuses(readCodexAnswer, printed('Not inside a trusted directory', 1), '')
    refuses(readCodexAnswer, printed([warning]), '')
  })

  it('is found when the last line is cut off', () => {
    assert.equal(
      readCodexAnswer(printed(`${JSON.stringify(message('x'))}\n{"type":"turn.comp`)),
      'x',
    )
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
    assert.equal(readOpencodeAnswer(printed(lines)), 'It is so')
  })

  it('is missing after an error', () => {
    const error = { type: 'error', error: { name: 'APIError', data: { message: 'no' } } }
    refuses(readOpencodeAnswer, printed([error], 1), 'no')
    refuses(readOpencodeAnswer, printed([{ type: 'error', error: { name: 'Unknown' } }]), 'Unknown')
    refuses(readOpencodeAnswer, printed([]), '')
  })
})

describe('the answer of gemini', () => {
  it('is the response of its document', () => {
    assert.equal(
      readGeminiAnswer(printed(JSON.stringify({ response: 'yes', stats: {} }, null, 2))),
      'yes',
    )
    const document = JSON.stringify({ response: 'yes', stats: { models: {} } }, null, 2)
    assert.equal(readGeminiAnswer(printed(`Loaded cached credentials.\n${document}\n`)), 'yes')
  })

  it('is missing after an exit code, with the document on standard error', () => {
    const document = JSON.stringify(
      { error: { type: 'Error', message: 'says no', code: 401 } },
      null,
      2,
    )
    const stderr = `Warning: colours\nError { \n  at x\n}\n${document}\n`
    refuses(readGeminiAnswer, printed('', 145, stderr), 'says no')
    refuses(readGeminiAnswer, printed('', 7), '')
    refuses(readGeminiAnswer, printed('{"response":null}'), '')
    refuses(readGeminiAnswer, printed([{ response: 'x', error: { message: 'no' } }]), 'no')
  })
})

describe('the answer of llm', () => {
  it('is what it prints', () => {
    assert.equal(readLlmAnswer(printed('two\nlines\n')), 'two\nlines')
    refuses(readLlmAnswer, printed('Error', 1), '')
  })
})
