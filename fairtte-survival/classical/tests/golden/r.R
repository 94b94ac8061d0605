# Records what R computes for the tests of the estimators, on the samples of cox.json, aft.json and cause_specific.json: Rscript r.R > r.json
#
# `tied` outcomes of competing risks are those of cause_specific.json with times rounded up to quarters.

suppressMessages({library(survival); library(cmprsk); library(riskRegression); library(prodlim); library(jsonlite)})

exact <- coxph.control(eps = 1e-13, toler.chol = 1e-15, iter.max = 100)
terms_of <- function(fit, errors = sqrt(diag(vcov(fit)))) list(coefficients = unname(coef(fit)), errors = unname(errors))

cox <- fromJSON("cox.json")
people <- data.frame(cox$x, event = as.numeric(cox$event), stratum = cox$stratum, subject = cox$subject)
names(people)[1:4] <- cox$names
fit <- function(time, ties = "efron", terms = "a + b + c + d", ...)
    coxph(as.formula(paste("Surv(time, event) ~", terms)), data = cbind(people, time = cox[[time]]), ties = ties, control = exact, ...)
with_baseline <- function(model) {
    baseline <- basehaz(model, centered = FALSE)
    jumps <- diff(c(0, baseline$hazard)) > 0
    c(terms_of(model), list(`log-likelihood` = model$loglik[2], `log-likelihood-null` = model$loglik[1], score = model$score, wald = model$wald.test,
        times = baseline$time[jumps], hazard = baseline$hazard[jumps]))
}
varying <- function(time, g) terms_of(coxph(Surv(time, event) ~ a + b + c + d + tt(a) + tt(b) + tt(c) + tt(d), ties = "efron", control = exact,
    data = cbind(people, time = cox[[time]]), tt = function(x, t, ...) x * g(t)))

aft <- fromJSON("aft.json")
waited <- data.frame(aft$x, time = aft$time, event = as.numeric(aft$event))
parametric <- function(distribution) {
    model <- survreg(Surv(time, event) ~ X1 + X2 + X3, data = waited, dist = distribution, control = survreg.control(rel.tolerance = 1e-14, maxiter = 200))
    list(coefficients = c(unname(coef(model)), log(model$scale)), errors = unname(sqrt(diag(vcov(model)))), `log-likelihood` = model$loglik[2])
}

causes <- fromJSON("cause_specific.json")
risks <- data.frame(time = causes$time, cause = causes$causes, u = causes$covariates[, 1], v = causes$covariates[, 2])
subdistribution <- function(time, cause) {
    x <- as.matrix(risks[, c("u", "v")])
    model <- crr(time, risks$cause, x, failcode = cause, gtol = 1e-12, maxiter = 100)
    predicted <- predict(model, x[1:5, ])
    # The rows of the prediction are the event times of the cause; the columns the first five samples.
    list(coefficients = unname(model$coef), errors = unname(sqrt(diag(model$var))), `log-likelihood` = model$loglik, `log-likelihood-null` = model$loglik.null,
        times = predicted[, 1], incidence = t(predicted[, -1]))
}
by_cause <- function(cause) {
    model <- CSC(Hist(time, cause) ~ u + v, data = risks, control = exact)
    list(coefficients = unname(coef(model$models[[cause]])),
        incidence = predict(model, newdata = risks[1:5, ], times = causes$grid, cause = cause, product.limit = FALSE, se = FALSE)$absRisk)
}
quarters <- ceiling(4 * risks$time) / 4

suppressWarnings(found <- list(
    cox = list(
        efron = with_baseline(fit("tied")), breslow = with_baseline(fit("tied", "breslow")), distinct = with_baseline(fit("distinct")),
        strata = terms_of(fit("tied", terms = "a + b + c + d + strata(stratum)")),
        robust = terms_of(fit("tied", robust = TRUE)), `robust-breslow` = terms_of(fit("tied", "breslow", robust = TRUE)),
        clustered = terms_of(fit("tied", terms = "a + b + c + d + cluster(subject)")),
        `robust-strata` = terms_of(fit("tied", terms = "a + b + c + d + strata(stratum)", robust = TRUE)),
        `varying-identity` = varying("tied", identity), `varying-log` = varying("distinct", function(t) log(t + 0.01))),
    aft = list(weibull = parametric("weibull"), `log-normal` = parametric("lognormal"), `log-logistic` = parametric("loglogistic")),
    `fine-gray` = list(distinct = list(subdistribution(risks$time, 1), subdistribution(risks$time, 2)),
        tied = list(subdistribution(quarters, 1), subdistribution(quarters, 2))),
    `cause-specific` = list(by_cause(1), by_cause(2))))
version <- function(name) as.character(packageVersion(name))
provenance <- list(R = R.version.string, survival = version("survival"), cmprsk = version("cmprsk"), riskRegression = version("riskRegression"), calls =
    "r.R in this folder: coxph, basehaz, coxph(tt =), survreg, crr, predict of crr, CSC and its predict(product.limit = FALSE)")
cat(toJSON(c(list(provenance = provenance), found), auto_unbox = TRUE, digits = NA))
