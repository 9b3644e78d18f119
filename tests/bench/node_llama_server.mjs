/* A server of OpenAI's /v1/completions, streamed, over llama.cpp by npm's node-llama-cpp, whose sequences share batches:
 * the peer of `llmpart serve` under tests/bench/serve_load.py. It listens on 127.0.0.1.
 *
 *   node node_llama_server.mjs MODEL.gguf PORT [SEQUENCES] [THREADS] [CONTEXT]
 *
 * node_modules with node-llama-cpp lies beside the file or above it. */
import http from "node:http";
import { getLlama, LlamaCompletion } from "node-llama-cpp";

const [model, port, sequences = "32", threads = "2", context = "256"] = process.argv.slice(2);
const llama = await getLlama({ gpu: false, maxThreads: Number(threads), logLevel: "error", build: "never" });
const loaded = await llama.loadModel({ modelPath: model });
const contexts = await loaded.createContext({
  sequences: Number(sequences), contextSize: Number(context), threads: Number(threads), batchSize: 512,
});
const idle = Array.from({ length: Number(sequences) }, () => contexts.getSequence());
const waiting = [];

const take = () => (idle.length > 0 ? Promise.resolve(idle.pop()) : new Promise((done) => waiting.push(done)));
const give = (sequence) => (waiting.length > 0 ? waiting.shift()(sequence) : idle.push(sequence));

async function answer(body, response) {
  const sequence = await take();
  let made = 0;
  try {
    await sequence.clearHistory();
    const completion = new LlamaCompletion({ contextSequence: sequence });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (event) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    await completion.generateCompletion(body.prompt, {
      maxTokens: body.max_tokens,
      temperature: 0,
      onToken: (tokens) => {
        made += tokens.length;
        send({ choices: [{ index: 0, text: loaded.detokenize(tokens) }] });
      },
    });
    completion.dispose({ disposeSequence: false });
    send({ choices: [], usage: { completion_tokens: made } });
    response.end("data: [DONE]\n\n");
  } finally {
    give(sequence);
  }
}

http
  .createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => (text += piece));
    request.on("end", () => answer(JSON.parse(text), response).catch((error) => response.end(`error: ${error}\n`)));
  })
  .listen(Number(port), "127.0.0.1", function () {
    console.log(`listening on 127.0.0.1:${this.address().port}`);
  });
