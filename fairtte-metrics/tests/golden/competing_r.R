# Records what R packages compute for the tests of competing risks: Rscript competing_r.R > competing_r.json
#
# Made-up samples, written into the file: `distinct` without tied times; `tied` in whole tenths; `tied-events`, in which an event and a censoring
# never share a time. Predictions are the true incidence; in the samples with ties many of them are equal.

suppressMessages({library(survival); library(riskRegression); library(pec); library(prodlim); library(cmprsk); library(jsonlite)})

made <- function(n, kind) {
    x <- round(rnorm(n), if (kind == "distinct") 2 else 1)
    rate <- cbind(0.5 * exp(0.8 * x), rep(0.35, n))
    waited <- rexp(n) / rowSums(rate)
    cause <- ifelse(runif(n) < rate[, 1] / rowSums(rate), 1, 2)
    censored <- rexp(n, 0.25)
    cause <- ifelse(waited <= censored, cause, 0)
    time <- if (kind == "distinct") round(pmin(waited, censored), 4) + 1e-6 * seq_len(n) else ceiling(10 * pmin(waited, censored)) / 10
    if (kind == "tied-events") time <- time + ifelse(cause == 0, 0.05, 0)
    list(x = x, rate = rate, time = round(time, 6), cause = cause)
}

incidence <- function(sample, cause, times) {
    total <- rowSums(sample$rate)
    round(outer(sample$rate[, cause] / total, rep(1, length(times))) * (1 - exp(-outer(total, times))), 3)
}

record <- function(sample, times) {
    data <- data.frame(time = sample$time, event = sample$cause)
    by_cause <- lapply(1:2, function(cause) {
        predicted <- incidence(sample, cause, times)
        score <- Score(list(model = predicted), formula = Hist(time, event) ~ 1, data = data, cause = cause, times = times,
            metrics = c("auc", "brier"), cens.model = "km", null.model = FALSE, se.fit = FALSE, conf.int = FALSE)
        harrell <- cindex(list(model = predicted), formula = Hist(time, event) ~ 1, data = data, eval.times = times, cause = cause,
            cens.model = "marginal", tiedOutcomeIn = FALSE, tiedMatchIn = FALSE, verbose = FALSE)
        at <- sort(unique(c(times, sample$time[sample$cause > 0])))
        curve <- prodlim(Hist(time, event) ~ 1, data = data)
        gray <- timepoints(cuminc(sample$time, sample$cause), at)
        row <- paste("1", cause)
        list(predicted = predicted, auc = score$AUC$score$AUC, brier = score$Brier$score$Brier,
            `c-wolbers` = unname(harrell$AppCindex$model),
            prodlim = list(times = at, incidence = unname(predict(curve, times = at, cause = cause, type = "cuminc"))),
            cuminc = list(times = at, incidence = unname(gray$est[row, ]), variance = unname(gray$var[row, ])))
    })
    list(time = sample$time, cause = sample$cause, times = times, causes = setNames(by_cause, 1:2))
}

suppressWarnings(RNGversion("4.2.0"))
set.seed(20261125)
versions <- sapply(c("riskRegression", "pec", "prodlim", "cmprsk", "survival"), function(name) as.character(packageVersion(name)))
sizes <- list(distinct = 80, tied = 120, `tied-events` = 120)
samples <- mapply(function(n, kind) record(made(n, kind), c(0.5, 1, 2, 3)), sizes, names(sizes), SIMPLIFY = FALSE)
cat(toJSON(list(
    provenance = list(R = R.version.string, packages = as.list(versions), calls = list(
        auc = "riskRegression Score(list(F), Hist(time, event) ~ 1, cause = k, metrics = c('auc', 'brier'), cens.model = 'km')",
        `c-wolbers` = "pec cindex(list(F), Hist(time, event) ~ 1, eval.times, cause = k, cens.model = 'marginal', tiedOutcomeIn = FALSE, tiedMatchIn = FALSE), AppCindex",
        prodlim = "predict(prodlim(Hist(time, event) ~ 1), times, cause = k, type = 'cuminc')",
        cuminc = "cmprsk timepoints(cuminc(time, cause), times)"), data = "made up by this file"),
    samples = samples), auto_unbox = TRUE, digits = NA, na = "null"))
